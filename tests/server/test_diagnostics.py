"""Diagnostics while typing: over unsaved text, in every kind of file, through broken text and changed settings."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types as t

from .kit import RECIPE, Editor, line_of, project

BROKEN_LAYERS = RECIPE.replace("num_layers=24", "num_layers=22")


def test_unsaved_text_is_judged_and_the_finding_stands_at_its_line(editor: Editor, shared: Path) -> None:
    path = shared / "typed_in.py"
    uri = editor.open(path, RECIPE)
    assert "MB201" not in editor.codes(uri)
    line = line_of(RECIPE, "num_layers=24")
    at = RECIPE.splitlines()[line].index("num_layers=24") + len("num_layers=2")
    editor.edit(uri, line, at, at + 1, "2")
    found = {entry.code: entry for entry in editor.diagnostics(uri)}
    assert "MB201" in found
    entry = found["MB201"]
    assert entry.range.start == t.Position(line_of(RECIPE, "pipeline_model_parallel_size"), 4)
    assert entry.severity == t.DiagnosticSeverity.Error and entry.source == "mblint"
    assert "22 layers" in entry.message and "layers-not-dividing-stages" in entry.message
    assert any("model.num_layers = 22" in related.message for related in entry.related_information or [])
    assert path.read_text() == RECIPE  # nothing was written
    editor.edit(uri, line, at, at + 1, "4")
    assert "MB201" not in editor.codes(uri)


def test_lines_above_move_the_findings_without_judging_again(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "moving.py", BROKEN_LAYERS)
    before = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
    editor.edit(uri, 0, 0, 0, "# one\n# two\n\n")
    after = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
    assert after.range.start.line == before.range.start.line + 3
    assert [related.location.range.start.line for related in after.related_information or []] == [
        related.location.range.start.line + (3 if related.location.uri == uri else 0) for related in before.related_information or []
    ]


def test_broken_text_keeps_the_last_findings_and_says_where_it_is_broken(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "broken.py", BROKEN_LAYERS)
    assert "MB201" in editor.codes(uri)
    line = line_of(RECIPE, "cfg.dataset.seq_length")
    editor.edit(uri, line, 0, 0, "    cfg.model.(\n")
    found = editor.diagnostics(uri)
    assert [entry.code for entry in found if entry.code == "MB901"] == ["MB901"]
    syntax = next(entry for entry in found if entry.code == "MB901")
    assert syntax.range.start.line == line and "syntax error" in syntax.message
    kept = next(entry for entry in found if entry.code == "MB201")
    assert kept.range.start.line == line_of(RECIPE, "pipeline_model_parallel_size")
    editor.change(uri, RECIPE)
    assert not {"MB901", "MB201"} & set(editor.codes(uri))


def test_a_file_that_was_never_whole_only_has_its_syntax_error(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "never.py", "def f(:\n")
    assert editor.codes(uri) == ["MB901"]
    editor.change(uri, "def f(:\n  'ü\0")
    assert editor.codes(uri) == ["MB901"]
    editor.change(uri, RECIPE)
    assert "MB901" not in editor.codes(uri)


def test_a_helper_of_another_buffer_counts_before_it_is_saved(editor: Editor, shared: Path) -> None:
    helper = "def settle(cfg):\n    cfg.model.pipeline_model_parallel_size = 4\n"
    recipe = BROKEN_LAYERS.replace("    cfg.model.pipeline_model_parallel_size = 4\n", "    settle(cfg)\n")
    recipe = recipe.replace("from megatron.bridge.models", "from settling import settle\nfrom megatron.bridge.models")
    own = editor.open(shared / "settled.py", recipe)
    other = editor.open(shared / "settling.py", helper)
    at_helper = editor.until(other, lambda found: any(entry.code == "MB201" for entry in found))
    assert next(entry for entry in at_helper if entry.code == "MB201").range.start.line == 1
    editor.change(other, helper.replace("= 4", "= 2"))
    editor.until(other, lambda found: not any(entry.code == "MB201" for entry in found))
    editor.until(own, lambda found: not any(entry.code == "MB201" for entry in found))
    assert (shared / "settling.py").read_text() == helper
    editor.close(other)
    # What is on disk counts again, and its finding is shown there although it is not open.
    editor.until(other, lambda found: any(entry.code == "MB201" for entry in found))
    editor.close(own)
    editor.until(other, lambda found: found == [])


def test_yaml_overrides_are_judged_with_their_recipe(editor: Editor, shared: Path) -> None:
    (shared / "base_recipe.py").write_text(RECIPE)
    text = "# mblint: recipe=base_recipe:small_config world_size=8 gpu=h100\nmodel:\n  num_layers: 24\ntrain:\n  micro_batch_size: 1\n"
    uri = editor.open(shared / "override.yaml", text, "yaml")
    assert "MB201" not in editor.codes(uri)
    editor.change(uri, text.replace("24", "22"))
    found = [entry for entry in editor.diagnostics(uri) if entry.code == "MB201"]
    assert len(found) == 1
    places = [
        found[0].range.start.line,
        *(r.location.range.start.line for r in found[0].related_information or [] if r.location.uri == uri),
    ]
    assert 2 in places  # the line of num_layers in the YAML file
    editor.change(uri, text + "optimizer: [\n")
    assert "MB901" in editor.codes(uri)


def test_a_script_is_judged_with_its_overrides(editor: Editor, shared: Path) -> None:
    script = (
        "#!/bin/bash\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n"
        "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config \\\n"
        "    model.tensor_model_parallel_size=2 \\\n    train.global_batch_size=64\n"
    )
    uri = editor.open(shared / "launch.sh", script, "shellscript")
    assert "MB114" not in editor.codes(uri)
    editor.change(uri, script.replace("parallel_size=2", "parallel_size=3"))
    found = [entry for entry in editor.diagnostics(uri) if entry.code == "MB114"]
    assert found and found[0].range.start.line == 3


def test_other_files_get_nothing(editor: Editor, shared: Path) -> None:
    for name, text, language in (
        ("plain.py", "import os\n\nprint(os.name)\n", "python"),
        ("compose.yaml", "services:\n  web:\n    image: nginx\n", "yaml"),
        ("hello.sh", "echo hello\n", "shellscript"),
    ):
        uri = editor.open(shared / name, text, language)
        assert editor.codes(uri) == []
        assert editor.lenses(uri) == []


def test_comments_hold_findings_back_and_idle_ones_are_told(editor: Editor, shared: Path) -> None:
    quiet = BROKEN_LAYERS.replace("parallel_size = 4\n", "parallel_size = 4  # mblint: ignore[MB201]\n")
    uri = editor.open(shared / "quiet.py", quiet)
    assert not {"MB201", "MB903"} & set(editor.codes(uri))
    editor.change(uri, quiet.replace("num_layers=22", "num_layers=24"))
    assert "MB903" in editor.codes(uri)


def test_settings_are_read_again_when_they_change(editor: Editor, tmp_path: Path, upstream: Path) -> None:
    root = project(tmp_path / "own", upstream)
    uri = editor.open(root / "recipe.py", BROKEN_LAYERS)
    assert "MB201" in editor.codes(uri)
    project(root, upstream, 'ignore = ["MB201"]\n')
    editor.watched(root / "mblint.toml")
    editor.until(uri, lambda found: not any(entry.code == "MB201" for entry in found))
    project(root, upstream, 'ignroe = ["MB201"]\n')
    editor.watched(root / "mblint.toml")
    found = editor.until(uri, lambda found: any("ignroe" in entry.message for entry in found))
    assert "did you mean `ignore`" in found[0].message and len(found) == 1
    assert any("ignroe" in text for text in editor.shown)
    project(root, upstream)
    editor.watched(root / "mblint.toml")
    editor.until(uri, lambda found: any(entry.code == "MB201" for entry in found))


def test_mistakes_in_a_settings_buffer_stand_at_their_line(editor: Editor, tmp_path: Path, upstream: Path) -> None:
    root = project(tmp_path / "settings", upstream)
    text = (root / "mblint.toml").read_text()
    uri = editor.open(root / "mblint.toml", text, "toml")
    assert editor.diagnostics(uri) == []
    editor.change(uri, text + 'gpu-type = "h100"\n')
    found = editor.diagnostics(uri)
    assert len(found) == 1 and found[0].range.start.line == text.count("\n")


def test_an_upstream_that_is_not_there_is_said_once(editor: Editor, tmp_path: Path) -> None:
    root = tmp_path / "missing"
    root.mkdir()
    (root / ".git").mkdir()
    (root / "mblint.toml").write_text('upstream = "0.0.1"\n')
    uri = editor.open(root / "recipe.py", RECIPE)
    found = editor.diagnostics(uri)
    assert len(found) == 1 and "mblint upstream fetch 0.0.1" in found[0].message
    editor.change(uri, RECIPE + "\n")
    editor.diagnostics(uri)
    assert sum("0.0.1" in text for text in editor.shown) == 1
    plain = editor.open(root / "plain.py", "import os\n")
    assert editor.diagnostics(plain) == []


def test_the_baseline_holds_in_the_editor(editor: Editor, tmp_path: Path, upstream: Path) -> None:
    import subprocess
    import sys

    root = project(tmp_path / "accepted", upstream)
    (root / "recipe.py").write_text(BROKEN_LAYERS)
    subprocess.run([sys.executable, "-m", "mblint", "check", ".", "--write-baseline", "-q"], cwd=root, check=False, capture_output=True)
    assert (root / "mblint-baseline.json").exists()
    uri = editor.open(root / "recipe.py")
    assert editor.codes(uri) == []


def test_rules_lead_to_their_pages_where_there_are_some(editor: Editor, tmp_path: Path, upstream: Path) -> None:
    root = project(tmp_path / "pages", upstream, 'docs-url = "https://docs.example.org/mblint"\n')
    uri = editor.open(root / "recipe.py", BROKEN_LAYERS)
    entry = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
    assert entry.code_description is not None and entry.code_description.href.startswith("https://docs.example.org/mblint/")
