"""`mblint check --base` and adoption, end to end on small real repositories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.review.history import commit, git, rules, swap

RECIPE = """\
from megatron.bridge.recipes.llama.h100.llama3 import llama3_8b_pretrain_2gpu_h100_bf16_config as shipped

TP = 1


def ours_config():
    cfg = shipped()
    cfg.model.tensor_model_parallel_size = TP
    cfg.model.sequence_parallel = True
    return cfg
"""


@pytest.fixture
def repo(workplace: Path) -> Path:
    folder = workplace
    (folder / "päckchen").mkdir(parents=True)
    (folder / "päckchen/ein rezept.py").write_text(RECIPE, encoding="utf-8")
    (folder / "mblint.toml").write_text('world-size = 64\nignore = ["MB717"]\nestimate = false\n')
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "First")
    return folder


FILE = "päckchen/ein rezept.py"
raise_tp = swap(FILE, ("TP = 1", "TP = 2"))


def test_staged_but_not_committed_as_pre_commit_runs_it(repo: Path, check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    raise_tp(repo)
    git(repo, "add", "-A")
    monkeypatch.setenv("PRE_COMMIT", "1")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    code, report, said = check(repo, "--base", "auto", "--new-only", FILE)
    assert (code, rules(report)) == (1, ["MB150"]), said


def test_without_a_base_change_rules_are_silent(repo: Path, check: Callable[..., Any]) -> None:
    raise_tp(repo)
    code, report, _ = check(repo)
    assert (code, rules(report)) == (0, [])


def test_worktree_and_detached_head(repo: Path, tmp_path: Path, check: Callable[..., Any]) -> None:
    tree = tmp_path / "zweiter baum"
    git(repo, "worktree", "add", "-q", "--detach", str(tree))
    raise_tp(tree)
    code, report, _ = check(tree, "--base", "HEAD", "--new-only")
    assert (code, rules(report)) == (1, ["MB150"])


def test_in_a_submodule_and_above_it(repo: Path, tmp_path: Path, check: Callable[..., Any]) -> None:
    top = tmp_path / "above"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "submodule", "add", "-q", str(repo), "recipes")
    (top / "mblint.toml").write_text("world-size = 64\nestimate = false\n")
    commit(top, "Add the recipes")
    raise_tp(top / "recipes")
    assert rules(check(top, "--base", "HEAD", "--new-only")[1]) == ["MB150"]
    assert rules(check(top / "recipes", "--base", "HEAD", "--new-only")[1]) == ["MB150"]


def test_a_shallow_clone_and_no_repository_are_one_line(repo: Path, tmp_path: Path, check: Callable[..., Any]) -> None:
    commit(repo, "Second")
    git(tmp_path, "clone", "-q", "--depth", "1", repo.as_uri(), "shallow")
    code, _, said = check(tmp_path / "shallow", "--base", "HEAD~1")
    assert code == 2 and said.count("\n") == 1 and "shallow clone" in said
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "r.py").write_text(RECIPE)
    code, _, said = check(plain, "--base", "auto")
    assert code == 2 and said.count("\n") == 1 and "not in a git repository" in said


def test_the_fix_takes_the_old_value_back(repo: Path, check: Callable[..., Any]) -> None:
    raise_tp(repo)
    code, _, said = check(repo, "--base", "HEAD", "--fix", "--unsafe-fixes", "--fix-only", "--select", "MB150", parse=False)
    assert code == 0, said
    assert "tensor_model_parallel_size = 1\n" in (repo / FILE).read_text(encoding="utf-8")


def test_a_settings_row_is_part_of_the_change(repo: Path, check: Callable[..., Any]) -> None:
    row = '\n[[launches]]\nname = "big"\nrecipe = "ours_config"\noverrides = ["model.tensor_model_parallel_size={}"]\n'
    settings = (repo / "mblint.toml").read_text()
    (repo / "mblint.toml").write_text(settings + row.format(1))
    commit(repo, "A launch")
    (repo / "mblint.toml").write_text(settings + row.format(4))
    code, report, _ = check(repo, "--base", "HEAD", "--new-only")
    assert (code, rules(report)) == (1, ["MB150"])


def test_a_launch_script_is_part_of_the_change(repo: Path, check: Callable[..., Any]) -> None:
    script = repo / "start 1.sh"
    line = "torchrun --nproc_per_node=8 scripts/training/run_recipe.py --recipe llama3_8b_pretrain_2gpu_h100_bf16_config"
    script.write_text(f"#!/bin/bash\n{line} model.tensor_model_parallel_size=1\n")
    commit(repo, "A script")
    assert rules(check(repo, "--base", "HEAD~1", "--new-only", "--select", "MB1")[1]) == [], "a new launch has no base"
    script.write_text(f"#!/bin/bash\n# longer now\n{line} model.tensor_model_parallel_size=2\n")
    code, report, _ = check(repo, "--base", "HEAD", "--new-only")
    assert (code, rules(report)) == (1, ["MB134", "MB150"])
    script.rename(repo / "begin.sh")
    check(repo, "--base", "HEAD", "--new-only")  # moved and changed at once: with or without a base, but no failure
    script.with_name("begin.sh").write_text(f"#!/bin/bash\n# longer now\n{line} model.tensor_model_parallel_size=1\n")
    assert rules(check(repo, "--base", "HEAD", "--new-only")[1]) == []


def test_launches_of_a_sweep_have_a_base_too(repo: Path, check: Callable[..., Any]) -> None:
    raise_tp(repo)
    (repo / "sweep.jsonl").write_text(json.dumps({"id": "1", "recipe": "ein rezept:ours_config", "world_size": 8}) + "\n")
    _, report, _ = check(repo, "--launches", "sweep.jsonl", "--base", "HEAD", "päckchen")
    assert [f["rule"] for f in report["launches"][0]["findings"] if f["rule"] == "MB150"] == ["MB150"]


def test_old_suppressions_are_not_repeated_and_new_ones_are(repo: Path, check: Callable[..., Any]) -> None:
    path = repo / FILE
    path.write_text(RECIPE.replace("TP = 1\n", "TP = 1  # mblint: ignore[MB203]\n"), encoding="utf-8")
    commit(repo, "An unused comment")
    path.write_text(path.read_text(encoding="utf-8").replace("cfg = shipped()", "cfg = shipped()  # as it is"), encoding="utf-8")
    assert "MB903" in rules(check(repo)[1])
    assert rules(check(repo, "--base", "HEAD", "--new-only")[1]) == []
    path.write_text(path.read_text(encoding="utf-8") + "# mblint: ignore-file[MB204]\n", encoding="utf-8")
    found = check(repo, "--base", "HEAD", "--new-only")[1]["findings"]
    assert [(f["rule"], f["spans"][0]["line"]) for f in found] == [("MB903", 11)]


# Adoption


def test_the_baseline_shrinks_by_itself(repo: Path, check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    swap(FILE, ("sequence_parallel = True", "sequence_parallel = False"), ("TP = 1", "TP = 2"))(repo)
    assert "MB134" in rules(check(repo)[1])
    code, _, said = check(repo, "--write-baseline")
    assert code == 0 and "1 findings are accepted" in said
    file = repo / "mblint-baseline.json"
    assert rules(check(repo)[1]) == []
    swap(FILE, ("sequence_parallel = False", "sequence_parallel = True"))(repo)
    monkeypatch.setenv("CI", "true")
    assert "match nothing any more; --write-baseline" in check(repo)[2]
    assert "MB134" in file.read_text()
    monkeypatch.delenv("CI")
    check(repo, "--select", "MB150")
    assert "MB134" in file.read_text(), "a rule that was off says nothing"
    assert "taken out" in check(repo)[2]
    assert "MB134" not in file.read_text()


def test_change_rules_do_not_go_into_the_baseline(repo: Path, check: Callable[..., Any]) -> None:
    raise_tp(repo)
    code, _, said = check(repo, "--base", "HEAD", "--write-baseline", "accepted.json")
    assert code == 0 and "0 findings are accepted" in said
    assert rules(check(repo, "--base", "HEAD", "--baseline", "accepted.json")[1]) == ["MB150"]


def test_write_baseline_before_a_folder_takes_it_for_a_path(repo: Path, check: Callable[..., Any]) -> None:
    assert check(repo, "--write-baseline", "päckchen")[0] == 0
    assert (repo / "mblint-baseline.json").exists()


def test_a_broken_baseline_is_one_line(repo: Path, check: Callable[..., Any]) -> None:
    (repo / "mblint-baseline.json").write_text("{")
    code, _, said = check(repo)
    assert code == 2 and said.count("\n") == 1 and "mblint-baseline.json" in said


def test_ignore_comments_hold_back_what_there_is(repo: Path, check: Callable[..., Any]) -> None:
    swap(FILE, ("sequence_parallel = True", "sequence_parallel = False"), ("TP = 1", "TP = 2"))(repo)
    code, _, said = check(repo, "--add-ignores", "--reason", "measured in May")
    assert code == 0 and "1 findings are ignored" in said
    text = (repo / FILE).read_text(encoding="utf-8")
    assert "# mblint: ignore[MB134] measured in May" in text
    assert rules(check(repo)[1]) == []
    swap(FILE, ("sequence_parallel = False", "sequence_parallel = True"))(repo)
    assert rules(check(repo)[1]) == ["MB903"]
    assert check(repo, "--fix", "--fix-only", parse=False)[0] == 0
    assert "mblint:" not in (repo / FILE).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--reason", "x"], "--reason needs --add-ignores"),
        (["--add-ignores", "--write-baseline"], "two ways"),
        (["--add-ignores", "--fix"], "fix first"),
        (["--new-only"], "needs --base"),
        (["--write-baseline", "--base", "HEAD", "--new-only"], "writes all findings"),
    ],
)
def test_options_that_do_not_go_together(repo: Path, check: Callable[..., Any], words: list[str], hint: str) -> None:
    code, _, said = check(repo, *words)
    assert code == 2 and hint in said
