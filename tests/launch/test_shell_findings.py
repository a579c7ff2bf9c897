"""Findings about a launch script's own text: what each reports, and what must stay quiet."""

from __future__ import annotations

import pytest

from mblint.findings import Finding
from mblint.launch.refusal import refused_arguments
from mblint.launch.script import read_script
from mblint.launch.shell_findings import shell_findings

RUN = "python scripts/training/run_recipe.py --recipe r_pretrain_config"


def found(text: str) -> list[Finding]:
    return shell_findings(read_script(text, "/repo/launch.sh"))


def brief(text: str) -> list[tuple[str, int]]:
    return [(f.rule, f.span.line if f.span else 0) for f in found(text)]


# ------------------------------------------------------------------ MB850


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{RUN} \\\n  model.a=1\n  model.b=2\n", 3),
        (f"{RUN}\n  --dataset mock\n", 2),
        (f"{RUN} \\\n  model.a=1 \\ \n  model.b=2\n", 3),
        (f"{RUN} \\\n  model.a=1 \\\n  # model.c=1 \\\n  model.b=2\n", 4),
        (f"{RUN} \\\n  model.a=1 # why\n  ++model.b=2\n", 3),
        (f"if true; then\n  {RUN} \\\n   model.a=1\n   ++model.b=1\nfi\n", 4),
    ],
)
def test_lost_options(text: str, line: int) -> None:
    findings = [f for f in found(text) if f.rule == "MB850"]
    assert findings and line in [f.span.line for f in findings if f.span]
    assert all(f.severity == "error" and f.related for f in findings)


@pytest.mark.parametrize(
    "text",
    [
        f"{RUN} \\\n  model.a=1 \\\n  model.b=2\n",
        f"{RUN} model.a=1\nmodel_b=2\nexport X=1\n",
        f"{RUN} model.a=1\necho --done\n",
        f"{RUN} model.a=1 \\\n\n./next.sh --x 1\n",
        f"{RUN} model.a=1;\n--strange\n",
        f"A='\n  model.a=1\n  model.b=2\n'\n{RUN} $A\n",
        f"ARGS=(\n  model.a=1\n  # model.c=1\n  --dataset mock\n)\n{RUN} ${{ARGS[@]}}\n",
        "python other.py \\\n  --x 1\n  --y 2\n",
        f"cat <<E\n{RUN} model.a=1\n  model.b=2\nE\n",
    ],
)
def test_nothing_is_lost(text: str) -> None:
    assert "MB850" not in [rule for rule, _ in brief(text)]


# ------------------------------------------------------------------ MB851


def test_an_override_given_twice() -> None:
    (finding,) = found(f"{RUN} \\\n  model.a=1 \\\n  model.b=2 \\\n  ++model.a=3\n")
    assert (finding.rule, finding.severity, finding.outcome) == ("MB851", "warning", "dead")
    assert finding.span is not None and finding.span.line == 2 and finding.related[0].span.line == 4
    assert "as 1 and as 3" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        f"{RUN} model.a=1 model.a=1\n",
        f"{RUN} model.a=1 model.ab=2\n",
        f"{RUN} model.a=1\n{RUN} model.a=2\n",
        f"for i in 1 2; do {RUN} model.a=$i; done\n",
        f"{RUN} model.a=1 model.a=$UNSET\n",
    ],
)
def test_no_override_given_twice(text: str) -> None:
    assert "MB851" not in [rule for rule, _ in brief(text)]


# ------------------------------------------------------------------ MB852


def test_a_variable_set_after_its_use() -> None:
    (finding,) = found(f"{RUN} model.seq_length=$SEQ\nSEQ=4096\n")
    assert (finding.rule, finding.severity) == ("MB852", "error")
    assert finding.span is not None and finding.span.line == 1 and finding.related[0].span.line == 2


def test_an_export_after_the_launch() -> None:
    (finding,) = found(f"{RUN} model.a=1\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n")
    assert (finding.rule, finding.severity, finding.outcome) == ("MB852", "warning", "dead")
    assert finding.span is not None and finding.span.line == 2


@pytest.mark.parametrize(
    "text",
    [
        f"SEQ=1\n{RUN} model.seq_length=$SEQ\nSEQ=2\n",
        f"{RUN} model.seq_length=${{SEQ:-1}}\nSEQ=2\n",
        f"for i in 1 2; do {RUN} model.seq_length=$SEQ; SEQ=$i; done\n",
        f"go() {{ {RUN} model.seq_length=$SEQ; }}\nSEQ=4\ngo\n",
        f"export CUDA_DEVICE_MAX_CONNECTIONS=1\n{RUN}\nexport CUDA_DEVICE_MAX_CONNECTIONS=2\n{RUN}\n",
        f"{RUN} model.seq_length=$SEQ\n",
        f"{RUN}\nexport MY_OWN=1\n",
        f"SEQ=${{SEQ:?needed}}\n{RUN} model.seq_length=$SEQ\n",
    ],
)
def test_no_variable_set_after_its_use(text: str) -> None:
    assert "MB852" not in [rule for rule, _ in brief(text)]


# ------------------------------------------------------------------ MB853

_BRANCH = "T=${{T:?}}\nT=${{T,,}}\nif [[ $T == {a} ]]; then T={b}; fi\nif [[ $T == {c} ]]; then O=model.x=1; fi\n" + RUN + " $O\n"


def test_a_branch_that_cannot_be_taken() -> None:
    assert brief(_BRANCH.format(a="fp8", b="fp8_cs", c="fp8")) == [("MB853", 4)]


@pytest.mark.parametrize(
    "text",
    [
        _BRANCH.format(a="fp8", b="fp8_cs", c="fp8_cs"),
        _BRANCH.format(a="fp8", b="fp8_cs", c="bf16"),
        f'DEBUG=""\nif [[ $DEBUG == 1 ]]; then O=model.x=1; fi\n{RUN} $O\n',
        f"if [[ ${{DEBUG:-0}} == 1 ]]; then O=model.x=1; fi\n{RUN} $O\n",
        f"if [[ $1 == fast ]]; then O=model.x=1; fi\n{RUN} $O\n",
        f"while [[ $# -gt 0 ]]; do case $1 in --x) O=model.x=1 ;; esac; shift; done\n{RUN} $O\n",
    ],
)
def test_branches_that_can_be_taken(text: str) -> None:
    assert "MB853" not in [rule for rule, _ in brief(text)]


# ------------------------------------------------------------------ MB854


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_8b --gpu h100 --num_gpus", "num_gpus"),
        ("python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_8b --gpu h100 --num_gpus x", "num_gpus"),
        (f"{RUN} --max_steps many", "max_steps"),
        (f"{RUN} stray", "stray"),
    ],
)  # fmt: skip
def test_a_command_line_that_the_runner_refuses(text: str, word: str) -> None:
    (spec,) = read_script(text, "/repo/launch.sh").launches
    finding = refused_arguments(spec)
    assert finding is not None and (finding.rule, finding.severity, finding.outcome) == ("MB854", "error", "fails")
    assert word in finding.message


def test_a_command_line_with_an_unknown_part_is_not_refused() -> None:
    text = "python scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_8b --gpu h100 --num_gpus $N"
    (spec,) = read_script(text, "/repo/launch.sh").launches
    assert refused_arguments(spec) is None


# ------------------------------------------------------------------ all


def test_a_script_that_launches_nothing_has_no_findings() -> None:
    assert brief("python train.py --x 1\n  --y 2\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n") == []


def test_each_finding_is_said_once() -> None:
    text = f"for i in 1 2 3; do\n  {RUN} \\\n    model.a=1 model.a=2\n    model.b=$i\ndone\n"
    rules = brief(text)
    assert len(rules) == len(set(rules)) and {rule for rule, _ in rules} == {"MB850", "MB851"}
