"""What is judged again after a change, and what is not; without a client, on the real upstream."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mblint.launch.session import with_deep_stack
from mblint.server.documents import Document, open_document, uri_of
from mblint.server.judging import Round, Stopped
from mblint.server.project import Options
from mblint.server.service import Answer, Service

from .kit import RECIPE, line_of, project

SECOND = RECIPE[RECIPE.index("def small_config") :].replace("small_config", "second_config")
HELPED = RECIPE.replace(
    "def small_config", "def _rest(cfg: ConfigContainer) -> None:\n    cfg.train.manual_gc = True\n\n\ndef small_config"
).replace("    return cfg\n", "    _rest(cfg)\n    return cfg\n", 1)
TWO = HELPED + "\n\n" + SECOND


class Bench:
    """A service over one project, which counts what it judges."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.service = Service(Options())
        self.judged: list[str] = []

    def open(self, name: str, text: str) -> Document:
        document = open_document(uri_of(str(self.root / name)), "python", 1, text, str(self.root))
        self.service.documents[document.uri] = document
        return document

    def answer(self, document: Document, text: str | None = None, work: Round | None = None) -> Answer:
        """Judge, as the worker does; `judged` tells which launches."""
        if text is not None:
            document.replace(text, (document.version or 0) + 1)
        return with_deep_stack(lambda: self._answer(document, work or Round(document.touched)))

    def _answer(self, document: Document, work: Round) -> Answer:
        assert document.path is not None
        project = self.service.projects.of(document.path)
        checker: Any = project.checker
        if not hasattr(checker, "counted"):
            checker.counted = checker.judge_launch

            def judge_launch(launch: Any, *rest: Any) -> Any:
                self.judged.append((launch.recipe or launch.id).rpartition(":")[2])
                return checker.counted(launch, *rest)

            checker.judge_launch = judge_launch
        self.judged.clear()
        return self.service.answer(document, work)

    def rules(self, answer: Answer) -> list[str]:
        return [group.finding.rule for group in answer.groups]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, upstream: Path) -> Bench:
    return Bench(project(tmp_path_factory.mktemp("judging") / "project", upstream))


def test_only_the_recipes_that_a_change_reaches_are_judged(bench: Bench) -> None:
    document = bench.open("two.py", TWO)
    bench.answer(document)
    assert sorted(bench.judged) == ["second_config", "small_config"]
    bench.answer(document, TWO)
    assert bench.judged == []
    bench.answer(document, "# above\n" + TWO)
    assert bench.judged == []  # the comment above the imports belongs to no recipe
    bench.answer(document, "# above\n" + TWO.replace("manual_gc = True", "manual_gc = False"))
    assert bench.judged == ["small_config"]
    bench.answer(document, "# above\n" + TWO.replace("def second_config", "\n\n# about it\ndef second_config"))
    assert "second_config" in bench.judged
    wrong = TWO.replace("num_layers=24", "num_layers=22", 1)
    answer = bench.answer(document, wrong)
    assert "MB201" in bench.rules(answer)
    assert bench.rules(bench.answer(document, wrong.replace("num_layers=22", "num_layers=24"))).count("MB201") == 0


def test_what_is_not_judged_again_is_found_at_its_new_line(bench: Bench) -> None:
    wrong = TWO.replace("def second_config", "# two\ndef second_config")
    head, tail = wrong[: wrong.index("def second_config")], wrong[wrong.index("def second_config") :].replace("=24", "=22")
    document = bench.open("lines.py", head + tail)
    before = next(group.finding for group in bench.answer(document).groups if group.finding.rule == "MB201")
    moved = head.replace("    cfg.train.micro_batch_size = 1\n", "    cfg.train.micro_batch_size = 1\n    cfg.train.eval_iters = 3\n\n", 1)
    answer = bench.answer(document, moved + tail)
    assert bench.judged == ["small_config"]
    after = next(group.finding for group in answer.groups if group.finding.rule == "MB201")
    assert before.span is not None and after.span is not None
    expected = (moved + tail)[: (moved + tail).rindex("cfg.model.pipeline")].count("\n") + 1
    assert after.span.line == before.span.line + 2 == expected
    assert [e.span.line for e in after.related if e.span.path == document.path] == [
        e.span.line + 2 for e in before.related if e.span.path == document.path
    ]
    assert [lens.line for lens in answer.lenses][1] == line_of(moved + tail, "def second_config") + 1


def test_a_round_stops_for_a_newer_change_and_goes_on_where_it_was(bench: Bench) -> None:
    document = bench.open("stopping.py", TWO)
    calls: list[int] = []

    def after_first() -> bool:
        calls.append(1)
        return True

    with pytest.raises(Stopped):
        bench.answer(document, work=Round(None, after_first))
    first = list(bench.judged)
    assert len(first) == 1
    bench.answer(document)
    assert len(bench.judged) == 1 and bench.judged != first


def test_the_recipe_under_the_cursor_comes_first(bench: Bench) -> None:
    document = bench.open("cursor.py", TWO)
    document.touched = line_of(TWO, "def second_config") + 4
    bench.answer(document)
    assert bench.judged[0] == "second_config"


def test_a_change_of_an_imported_module_reaches_its_users_alone(bench: Bench) -> None:
    helper = bench.open("shapes.py", "def settle(cfg):\n    cfg.model.pipeline_model_parallel_size = 4\n")
    user = bench.open("using.py", RECIPE.replace("from megatron.bridge.models", "from shapes import settle\nfrom megatron.bridge.models").replace(
        "    cfg.model.pipeline_model_parallel_size = 4\n", "    settle(cfg)\n").replace("=24", "=22"))  # fmt: skip
    other = bench.open("other.py", RECIPE)
    for document in (helper, user, other):
        bench.answer(document)
    helper.replace(helper.text.replace("= 4", "= 2"), 2)
    bench.answer(other)
    assert bench.judged == []
    assert "MB201" not in bench.rules(bench.answer(user))
    assert bench.judged == ["small_config"]


def test_a_file_on_disk_that_changes_without_a_word_is_read_again(bench: Bench) -> None:
    import os
    import time

    path = bench.root / "disk.py"
    path.write_text("LAYERS = 22\n")
    document = bench.open(
        "reading.py",
        RECIPE.replace("num_layers=24", "num_layers=LAYERS").replace(
            "from megatron.bridge.models", "from disk import LAYERS\nfrom megatron.bridge.models"
        ),
    )
    assert "MB201" in bench.rules(bench.answer(document))
    path.write_text("LAYERS = 24\n")
    os.utime(path, (time.time() + 5, time.time() + 5))
    assert "MB201" not in bench.rules(bench.answer(document))
    path.unlink()
    bench.answer(document)
    assert bench.judged == ["small_config"]  # and nothing is remembered of a file that is gone


def test_a_module_that_appears_is_found(bench: Bench) -> None:
    text = RECIPE.replace("num_layers=24", "num_layers=LAYERS").replace(
        "from megatron.bridge.models", "from appearing import LAYERS\nfrom megatron.bridge.models"
    )
    document = bench.open("waiting.py", text)
    assert "MB201" not in bench.rules(bench.answer(document))
    bench.open("appearing.py", "LAYERS = 22\n")
    assert "MB201" in bench.rules(bench.answer(document))


def test_memory_does_not_grow_with_the_changes(bench: Bench) -> None:
    document = bench.open("growing.py", TWO)

    def trees() -> int:
        gc.collect()
        return sum(
            isinstance(held, ast.Module) and any(getattr(node, "name", "") == "_rest" for node in held.body) for held in gc.get_objects()
        )

    bench.answer(document)
    before = trees()
    for number in range(32):
        bench.answer(document, TWO.replace("manual_gc = True", f"manual_gc_interval = {number + 2}"))
    assert trees() <= before + 2


def _answers(bench: Bench, texts: list[str], name: str) -> list[list[tuple[Any, ...]]]:
    document = bench.open(name, texts[0])
    return [_said(bench.answer(document, text)) for text in texts]


def _said(answer: Answer) -> list[tuple[Any, ...]]:
    return sorted(
        (f.rule, f.message.replace(Path(answer.path).stem, "NAME"), f.span.line if f.span else 0, f.span.column if f.span else 0)
        for f in (group.finding for group in answer.groups)
    )


def test_judging_step_by_step_says_what_judging_at_once_says(bench: Bench) -> None:
    changes: list[Callable[[str], str]] = [
        lambda text: text.replace("num_layers=24", "num_layers=22", 1),
        lambda text: "import os\n" + text,
        lambda text: text.replace("manual_gc = True", "manual_gc = False"),
        lambda text: text.replace("    _rest(cfg)\n", ""),
        lambda text: text.replace("seq_length = 4096", "seq_length = 2048"),
        lambda text: text.replace("def second_config", "# mblint: ignore[MB201]\ndef second_config"),
        lambda text: text.replace("num_layers=22", "num_layers=24"),
    ]
    texts = [TWO]
    for change in changes:
        texts.append(change(texts[-1]))
    stepwise = _answers(bench, texts, "stepwise.py")
    for number, text in enumerate(texts):
        fresh = bench.open(f"fresh_{number}.py", text)
        assert stepwise[number] == _said(bench.answer(fresh)), number


def test_the_editor_says_what_the_command_says(bench: Bench) -> None:
    import json
    import subprocess
    import sys

    text = TWO.replace("num_layers=24", "num_layers=22", 1).replace("micro_batch_size = 1\n", "micro_batch_size = 3\n")
    (bench.root / "both.py").write_text(text)
    document = bench.open("both.py", TWO)
    bench.answer(document)
    here = sorted(
        (f.rule, f.message, f.span.line if f.span else 0) for f in (group.finding for group in bench.answer(document, text).groups)
    )
    command = [sys.executable, "-m", "mblint", "check", "both.py", "--format", "json", "--exit-zero"]
    said = json.loads(subprocess.run(command, cwd=bench.root, capture_output=True, text=True, check=True).stdout)
    there = sorted({(f["rule"], f["message"], next((span["line"] for span in f["spans"] if span["primary"]), 0)) for f in said["findings"]})
    assert here == there and here


def _type(bench: Bench, document: Document, body: str, step: int) -> None:
    """The text as it grows; after each step what an editor asks at its end."""
    from mblint.server import questions

    for cut in range(0, len(body), step):
        text = body[:cut]
        bench.answer(document, text)
        line, column = text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1
        for ask in (questions.complete_at, questions.hover_at):
            with_deep_stack(partial(ask, bench.service, document, line, column))


def test_typing_a_file_from_nothing_never_fails(bench: Bench) -> None:
    document = bench.open("typed_out.py", "")
    body = TWO.replace("vocab_size=128256)", "vocab_size=128256)  # 🚀 groß")
    _type(bench, document, body, 23)
    assert _said(bench.answer(document, body)) == _said(bench.answer(bench.open("typed_at_once.py", body)))


def test_typing_yaml_and_scripts_from_nothing_never_fails(bench: Bench) -> None:
    (bench.root / "typed_base.py").write_text(RECIPE)
    texts = {
        "typed.yaml": "# mblint: recipe=typed_base:small_config world_size=8 gpu=h100\nmodel:\n  num_layers: 22\n  recompute_granularity: 'full'\n"
        "train: {micro_batch_size: 1}\noptimizer:\n  lr: 3e-4 # ü\n",
        "typed.sh": "#!/bin/bash\nset -e\nN=8\ntorchrun --nproc_per_node=$N scripts/training/run_recipe.py --recipe llama3_8b_pretrain_config \\\n"
        '  model.tensor_model_parallel_size=3 "train.global_batch_size=64" ++model.x=1\n',
    }
    for name, body in texts.items():
        document = bench.open(name, "")
        _type(bench, document, body, 9)
        assert bench.rules(bench.answer(document, body)) != []
