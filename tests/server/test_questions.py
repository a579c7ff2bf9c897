"""Hovers, lenses, completion and actions, asked by a real client."""

from __future__ import annotations

import ast
from pathlib import Path

from lsprotocol import types as t

from .kit import RECIPE, Editor, applied, line_of

BROKEN_LAYERS = RECIPE.replace("num_layers=24", "num_layers=22")
PIPELINE = line_of(RECIPE, "pipeline_model_parallel_size")


def test_hover_says_value_who_set_it_and_what_it_does_to_memory(editor: Editor, shared: Path) -> None:
    text = RECIPE.replace("    cfg.train.train_iters", "    cfg.model.tensor_model_parallel_size = 2\n    cfg.train.train_iters")
    text = text.replace("parallel_size = 4", "parallel_size = 2")
    uri = editor.open(shared / "hovering.py", text)
    said = editor.hovered(uri, line_of(text, "tensor_model"), 25)
    assert said.startswith("**model.tensor_model_parallel_size** — `int` = `1`")
    assert "`2` in `small_config`" in said
    assert f"set at [hovering.py:{line_of(text, 'tensor_model') + 1}]" in said
    assert "memory of the fullest GPU: " in said and " of 79.1 GiB" in said
    assert "- with `4`: " in said and "- with `1`: " in said
    # A key that memory does not depend on says nothing of it.
    assert "memory" not in editor.hovered(uri, line_of(text, "train_iters"), 20)


def test_hover_says_what_the_launch_path_makes_of_a_value(editor: Editor, shared: Path) -> None:
    text = RECIPE.replace(
        "    return cfg",
        '    cfg.mixed_precision = "bf16_mixed"\n    cfg.ddp.grad_reduce_in_fp32 = False\n    cfg.model.bf16 = False\n    return cfg',
    )
    uri = editor.open(shared / "effective.py", text)
    said = editor.hovered(uri, line_of(text, "cfg.model.bf16"), 16)
    assert "`False` in `small_config`" in said
    assert "**after the launch path: `True`**, written by [megatron/bridge/training/mixed_precision.py:" in said


def test_hover_covers_keywords_sections_names_for_sections_and_nothing_else(editor: Editor, shared: Path) -> None:
    text = RECIPE.replace("    cfg.dataset.seq_length = 4096", "    data = cfg.dataset\n    data.seq_length = 4096  # länger 🚀 seq_length")
    uri = editor.open(shared / "places.py", text)
    row = line_of(text, "num_layers=24")
    keyword = editor.hover(uri, row, text.splitlines()[row].index("hidden_size") + 3)
    assert keyword is not None and "**model.hidden_size**" in keyword.contents.value  # type: ignore[union-attr]
    start = text.splitlines()[row].index("hidden_size")
    assert keyword.range == t.Range(t.Position(row, start), t.Position(row, start + len("hidden_size")))
    assert "**dataset.seq_length**" in editor.hovered(uri, line_of(text, "data.seq_length"), 12)
    assert "**model** — `megatron.bridge.models.gpt_provider.GPTModelProvider`" in editor.hovered(uri, PIPELINE, 9)
    assert editor.hover(uri, 0, 5) is None
    assert editor.hover(uri, line_of(text, "return cfg"), 6) is None
    assert editor.hover(uri, 400, 7) is None


def test_hover_in_yaml_and_in_scripts(editor: Editor, shared: Path) -> None:
    (shared / "hover_base.py").write_text(RECIPE)
    text = "# mblint: recipe=hover_base:small_config world_size=8 gpu=h100\nmodel:\n  num_layers: 12\ntrain:\n  micro_batch_size: 2\n"
    uri = editor.open(shared / "hover.yaml", text, "yaml")
    said = editor.hovered(uri, 2, 6)
    assert (
        said.startswith("**model.num_layers**")
        and "`12`" in said
        and "set at [hover.yaml:3]" in said
        and "before that [hover_base.py:9]" in said
    )
    script = (
        "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config \\\n"
        "    model.tensor_model_parallel_size=2\n"
    )
    uri = editor.open(shared / "hover.sh", script, "shellscript")
    said = editor.hovered(uri, 1, 15)
    assert said.startswith("**model.tensor_model_parallel_size**") and "set at [hover.sh:2]" in said


def test_a_helper_is_explained_by_the_recipe_that_uses_it(editor: Editor, shared: Path) -> None:
    text = RECIPE.replace("    cfg.model.pipeline_model_parallel_size = 4\n", "    _shape(cfg.model)\n")
    text = text.replace("def small_config", "def _shape(model) -> None:\n    model.pipeline_model_parallel_size = 4\n\n\ndef small_config")
    uri = editor.open(shared / "helping.py", text)
    said = editor.hovered(uri, line_of(text, "    model.pipeline"), 20)
    assert said.startswith("**model.pipeline_model_parallel_size**") and "`4` in `small_config`" in said


def test_lenses_show_the_layout_and_the_estimate(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "lenses.py", RECIPE)
    editor.diagnostics(uri)
    found = editor.lenses(uri)
    assert [entry.range.start.line for entry in found] == [line_of(RECIPE, "def small_config")] * 2
    titles = [entry.command.title for entry in found if entry.command]
    assert titles[0] == "TP 1 · PP 4 · CP 1 · EP 1 · DP 2 on 8 h100 · MBS 1 · GBS 32"
    assert titles[1].startswith("memory: ") and "of 79.1 GiB (fits)" in titles[1]
    assert "lenses" in editor.asked  # the client was told to fetch them
    editor.change(uri, "\n\n" + RECIPE.replace("parallel_size = 4", "parallel_size = 2"))
    editor.diagnostics(uri)
    changed = editor.lenses(uri)
    assert changed[0].range.start.line == line_of(RECIPE, "def small_config") + 2
    assert changed[0].command is not None and "PP 2 · CP 1 · EP 1 · DP 4" in changed[0].command.title
    command = changed[1].command
    assert command is not None and command.arguments is not None
    said = editor.command(command.command, *command.arguments)
    assert said.startswith("small_config: memory: ") and "GiB by part: " in said
    editor.wait(lambda: said in editor.shown)


def test_completion_of_keys_while_the_line_is_broken(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "completing.py", RECIPE)
    line = line_of(RECIPE, "cfg.train.train_iters")
    lines = RECIPE.splitlines()

    def typed(text: str) -> list[t.CompletionItem]:
        editor.change(uri, "\n".join([*lines[:line], text, *lines[line + 1 :], ""]))
        return editor.complete(uri, line, len(text))

    found = {item.label: item for item in typed("    cfg.model.")}
    assert found["tensor_model_parallel_size"].detail == "int = 1"
    assert "megatron/core/model_parallel_config.py" in str(found["tensor_model_parallel_size"].documentation)
    edit = found["recompute_granularity"].text_edit
    assert isinstance(edit, t.TextEdit) and edit.range.start == t.Position(line, len("    cfg.model."))
    partly = {item.label: item for item in typed("    cfg.model.recomp")}
    assert isinstance(partly["recompute_granularity"].text_edit, t.TextEdit)
    assert partly["recompute_granularity"].text_edit.range.start.character == len("    cfg.model.")
    assert {"model", "train", "optimizer", "ddp", "env_vars"} <= {item.label for item in typed("    cfg.")}
    assert [item.label for item in typed("    cfg.model.recompute_granularity = ")] == ['"full"', '"selective"', "None"]
    assert [item.label for item in typed("    cfg.ddp.overlap_grad_reduce = ")] == ["True", "False"]
    assert [item.label for item in typed("    cfg.model.recompute_granularity = 'f")] == ["'full'", "'selective'", "None"]
    assert "AttnBackend.flash" in [item.label for item in typed("    cfg.model.attention_backend = ")]
    assert "train_iters" in {item.label for item in typed("    cfg.train.trainn.")} or typed("    cfg.train.trainn.") == []
    assert typed("    if cfg.model.num_layers == ") == []
    assert typed("    # cfg.model.") == []
    assert {item.label: item for item in typed("    cfg.model = GPTModelProvider(num_l")}["num_layers"].text_edit.new_text == "num_layers="  # type: ignore[union-attr]


def test_completion_in_a_recipe_that_is_just_being_written(editor: Editor, shared: Path) -> None:
    text = RECIPE + "\n\ndef second_config() -> ConfigContainer:\n    cfg = small_config()\n    cfg.optimizer.\n"
    uri = editor.open(shared / "second.py", text)
    assert "lr" in {item.label for item in editor.complete(uri, line_of(text, "cfg.optimizer."), len("    cfg.optimizer."))}


def test_completion_in_yaml_and_in_scripts(editor: Editor, shared: Path) -> None:
    head = "# mblint: recipe=completing_base:small_config world_size=8 gpu=h100\nmodel:\n  num_layers: 24\n"
    (shared / "completing_base.py").write_text(RECIPE)
    uri = editor.open(shared / "complete.yaml", head, "yaml")

    def typed(text: str) -> dict[str, t.CompletionItem]:
        editor.change(uri, head + text + "\n")
        line = 3 + text.count("\n")
        return {item.label: item for item in editor.complete(uri, line, len(text.rpartition("\n")[2]))}

    found = typed("  seq")
    assert found["seq_length"].text_edit.new_text == "seq_length: "  # type: ignore[union-attr]
    assert "train_iters" in typed("train:\n  ") and "seq_length" not in typed("train:\n  ")
    assert list(typed("  recompute_granularity: ")) == ["full", "selective", "null"] or '"full"' in typed("  recompute_granularity: ")
    assert {"train", "optimizer"} <= set(typed("t"))
    other = editor.open(shared / "other.yaml", "services:\n  we\n", "yaml")
    assert editor.complete(other, 1, 4) == []
    script = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config model.tens\n"
    uri = editor.open(shared / "complete.sh", script, "shellscript")
    labels = {item.label for item in editor.complete(uri, 0, len(script) - 1)}
    assert "tensor_model_parallel_size" in labels


def test_a_fix_is_offered_with_its_grade_and_cost_and_holds(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "fixing.py", BROKEN_LAYERS)
    found = [entry for entry in editor.diagnostics(uri) if entry.code == "MB201"]
    offered = editor.actions(uri, PIPELINE, diagnostics=found)
    fixes = [action for action in offered if action.edit is not None]
    assert any("Use 2 pipeline stages" in action.title and "(MB201, unsafe: " in action.title for action in fixes), offered
    chosen = next(action for action in fixes if "Use 2 pipeline stages" in action.title)
    assert chosen.kind == t.CodeActionKind.QuickFix and list(chosen.diagnostics or []) == found
    changes = chosen.edit.document_changes if chosen.edit else None
    assert changes and isinstance(changes[0], t.TextDocumentEdit)
    assert changes[0].text_document.uri == uri and changes[0].text_document.version == 1
    after = applied(BROKEN_LAYERS, [edit for edit in changes[0].edits if isinstance(edit, t.TextEdit)])
    assert "pipeline_model_parallel_size = 2" in after
    editor.change(uri, after)
    assert "MB201" not in editor.codes(uri)


def test_a_finding_can_be_ignored_at_its_line_or_in_the_file(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "ignoring.py", BROKEN_LAYERS)
    editor.diagnostics(uri)
    offered = {action.title: action for action in editor.actions(uri, PIPELINE)}
    for title, part in (("Ignore MB201 here", "# mblint: ignore[MB201]"), ("Ignore MB201 in this file", "# mblint: ignore-file[MB201]")):
        editor.change(uri, BROKEN_LAYERS)
        editor.diagnostics(uri)
        offered = {action.title: action for action in editor.actions(uri, PIPELINE)}
        assert offered[title].edit is None
        done = editor.run(editor.client.code_action_resolve_async(offered[title]))
        assert done.edit is not None
        after = applied(BROKEN_LAYERS, list(done.edit.document_changes[0].edits))
        assert part in after and ast.dump(ast.parse(after)) == ast.dump(ast.parse(BROKEN_LAYERS))
        editor.change(uri, after)
        assert not {"MB201", "MB903"} & set(editor.codes(uri))
        # The text that the comment was made for is gone.
        assert editor.run(editor.client.code_action_resolve_async(offered[title])).edit is None


def test_all_safe_fixes_at_once(editor: Editor, shared: Path) -> None:
    text = BROKEN_LAYERS.replace(
        "    cfg.train.train_iters", "    cfg.train.manual_gc_intervall = 5  # mblint: ignore[MB390]\n    cfg.train.train_iters"
    )
    uri = editor.open(shared / "everything.py", text)
    codes = editor.codes(uri)
    assert "MB903" in codes
    assert editor.actions(uri, 0, only=["source.organizeImports"]) == []
    for only in (["source.fixAll"], ["source.fixAll.mblint"], ["source"]):
        for action in editor.actions(uri, 0, only=only):
            assert action.kind == "source.fixAll.mblint"


def test_fixes_in_yaml_change_the_yaml(editor: Editor, shared: Path) -> None:
    (shared / "yaml_base.py").write_text(RECIPE)
    text = "# mblint: recipe=yaml_base:small_config world_size=8 gpu=h100\nmodel:\n  num_layers: 24\n  pipeline_model_parallel_size: 5\ntrain:\n  micro_batch_size: 1\n"
    uri = editor.open(shared / "fixed.yaml", text, "yaml")
    found = editor.diagnostics(uri)
    assert found
    edits = [
        edit
        for line in range(6)
        for action in editor.actions(uri, line)
        if action.edit is not None
        for change in action.edit.document_changes or []
        if isinstance(change, t.TextDocumentEdit) and change.text_document.uri == uri
        for edit in change.edits
    ]
    assert edits, [(entry.code, entry.message) for entry in found]
