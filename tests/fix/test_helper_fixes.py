"""Fixes in a function that several recipes of the project get a value from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mblint.cli.main import main

pytestmark = pytest.mark.upstream

HELPER = '''"""What our recipes share."""

from megatron.bridge.recipes.llama.h100.llama3 import llama3_70b_pretrain_32gpu_h100_bf16_config as start


def shared(cfg):
    """Settings of the cluster."""
    cfg.model.cpu_offloading = True  # measured in spring
    cfg.model.cpu_offloading_num_layers = 20
'''
RECIPE = """from common import shared, start
from megatron.bridge.training.config import ConfigContainer


def {name}_config() -> ConfigContainer:
    cfg = start()
    shared(cfg){more}
    return cfg
"""
HEALTHY = """
    cfg.model.pipeline_model_parallel_size = 1
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.model.tensor_model_parallel_size = 8
    cfg.model.context_parallel_size = 4"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, upstream: Path) -> Path:
    (tmp_path / "mblint.toml").write_text(
        f'upstream = "{upstream}"\ngpu = "h100"\nworld-size = 32\nselect = ["MB301", "MB39", "MB801", "MB001"]\n'
    )
    (tmp_path / "common.py").write_text(HELPER)
    for name in ("alpha", "beta"):
        (tmp_path / f"{name}.py").write_text(RECIPE.format(name=name, more=""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fixes(capsys: pytest.CaptureFixture[str], *paths: str, rule: str = "MB301") -> dict[str, list[dict[str, Any]]]:
    """The fixes of each launch's finding of the rule."""
    main(["check", *paths, "--format", "json", "-j1", "--no-cache"])
    found = json.loads(capsys.readouterr().out)["findings"]
    return {finding["launch"].partition(":")[0]: finding["fixes"] for finding in found if finding["rule"] == rule}


def test_where_all_recipes_have_the_finding_the_helper_is_mended(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = fixes(capsys, ".")
    assert sorted(found) == ["alpha", "beta"]
    for (fix,) in found.values():
        assert fix["title"] == "Switch CPU offloading off, in shared" and fix["safety"] == "safe"
        assert fix["cost"].endswith("it changes alpha_config and beta_config")
        assert fix["recipes"] == ["alpha:alpha_config", "beta:beta_config"]
        assert [(edit["path"], edit["line"], edit["text"]) for edit in fix["edits"]] == [("common.py", 8, "False")]
    assert main(["check", ".", "--fix", "--show-fixes", "-j1"]) == 0
    said = capsys.readouterr().err
    assert "common.py: MB301 Switch CPU offloading off, in shared" in said and "1 fix applied in 1 file" in said
    assert (repo / "common.py").read_text() == HELPER.replace("offloading = True", "offloading = False")
    assert (repo / "alpha.py").read_text() == RECIPE.format(name="alpha", more="")


def test_where_some_lack_the_finding_the_helper_is_a_choice_with_their_names(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "gamma.py").write_text(RECIPE.format(name="gamma", more=HEALTHY))
    found = fixes(capsys, ".")
    assert sorted(found) == ["alpha", "beta"]
    for name, (own, shared) in found.items():
        assert own["title"] == "Switch CPU offloading off" and own["safety"] == "safe" and own["recipes"] == []
        assert {edit["path"] for edit in own["edits"]} == {f"{name}.py"}
        assert shared["title"] == "Switch CPU offloading off, in shared" and shared["safety"] == "unsafe"
        assert shared["cost"].endswith("it changes alpha_config, beta_config and gamma_config; gamma_config does not need it")
        assert shared["recipes"] == ["alpha:alpha_config", "beta:beta_config", "gamma:gamma_config"]
    assert main(["check", ".", "-j1"]) == 1
    text = capsys.readouterr().out
    assert "fix: Switch CPU offloading off [safe]" in text and "fix: Switch CPU offloading off, in shared [unsafe, choose]" in text
    assert "1 fixable with `--fix`." in text
    for option in ("--fix", "--unsafe-fixes"):  # the second one has nothing left to do
        main(["check", ".", "--fix", option, "-j1"])
        assert (repo / "common.py").read_text() == HELPER
    assert "cpu_offloading = False" in (repo / "alpha.py").read_text() and "cpu_offloading = False" in (repo / "beta.py").read_text()
    assert (repo / "gamma.py").read_text() == RECIPE.format(name="gamma", more=HEALTHY)


def test_a_recipe_that_the_run_was_not_asked_about_counts(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "gamma.py").write_text(RECIPE.format(name="gamma", more=HEALTHY))
    ((own, shared),) = fixes(capsys, "alpha.py").values()
    assert {edit["path"] for edit in own["edits"]} == {"alpha.py"}
    assert shared["recipes"] == ["alpha:alpha_config", "beta:beta_config", "gamma:gamma_config"]
    # A run that was asked about one recipe changes nothing else, though all of them have the finding.
    (repo / "gamma.py").unlink()
    ((own, shared),) = fixes(capsys, "alpha.py").values()
    assert shared["safety"] == "unsafe" and shared["recipes"] == ["alpha:alpha_config", "beta:beta_config"]
    main(["check", "alpha.py", "--fix", "-j1"])
    assert (repo / "common.py").read_text() == HELPER and "cpu_offloading = False" in (repo / "alpha.py").read_text()


def test_an_edit_that_would_harm_another_recipe_is_not_offered(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harmed = '\n    cfg.model.pipeline_model_parallel_size = 1\n    if not cfg.model.cpu_offloading:\n        raise ValueError("needs it")'
    (repo / "gamma.py").write_text(RECIPE.format(name="gamma", more=harmed))
    for (own,) in fixes(capsys, "alpha.py", "beta.py").values():
        assert own["recipes"] == []


@pytest.mark.parametrize(
    "helper",
    [
        HELPER.replace("def shared(cfg):", "def shared(cfg, on=True):").replace("= True  #", "= on  #"),
        HELPER.replace("cpu_offloading = True", "cpu_offloading = bool(20)"),
        HELPER.replace("    cfg.model.cpu_offloading = True", "    for _ in range(1):\n        cfg.model.cpu_offloading = True"),
    ],
    ids=["parameter", "expression", "loop"],
)
def test_what_a_helper_computes_is_overridden_in_the_recipe(repo: Path, capsys: pytest.CaptureFixture[str], helper: str) -> None:
    (repo / "common.py").write_text(helper)
    found = fixes(capsys, ".")
    assert sorted(found) == ["alpha", "beta"]
    for name, (own,) in found.items():
        assert own["recipes"] == [] and {edit["path"] for edit in own["edits"]} == {f"{name}.py"}


def test_helper_and_recipes_may_share_a_file(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bodies = [RECIPE.format(name=name, more="").split("\n\n\n")[1] for name in ("one", "two")]
    for name in ("alpha.py", "beta.py", "common.py"):
        (repo / name).unlink()
    text = HELPER + "\n\n" + "\n\n".join(bodies)
    (repo / "all.py").write_text(text.replace(" -> ConfigContainer", ""))
    main(["check", ".", "--fix", "-j1"])
    assert (repo / "all.py").read_text() == text.replace(" -> ConfigContainer", "").replace("offloading = True", "offloading = False")
    bodies.append(RECIPE.format(name="three", more=HEALTHY).split("\n\n\n")[1])
    text = (HELPER + "\n\n" + "\n\n".join(bodies)).replace(" -> ConfigContainer", "")
    (repo / "all.py").write_text(text)
    main(["check", ".", "--fix", "-j1"])
    now = (repo / "all.py").read_text()
    assert now.count("cpu_offloading = True") == 1 and now.count("cpu_offloading = False") == 2
    capsys.readouterr()
    assert fixes(capsys, ".") == {}


def test_a_recipe_that_others_start_from_tells_their_names(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "common.py").unlink()
    (repo / "alpha.py").write_text(
        HELPER.replace("def shared(cfg):", "def alpha_config():").replace("    cfg.", "    cfg = start()\n    cfg.", 1) + "    return cfg\n"
    )
    (repo / "beta.py").write_text("from alpha import alpha_config\n\n\ndef beta_config():\n    return alpha_config()\n")
    found = fixes(capsys, ".")
    assert {fix["title"] for (fix,) in found.values()} == {"Switch CPU offloading off, in alpha_config"}
    assert {fix["cost"].partition("; it changes ")[2] for (fix,) in found.values()} == {"alpha_config and beta_config"}
    assert main(["check", ".", "--fix", "-j1"]) == 0
    assert (repo / "beta.py").read_text().endswith("    return alpha_config()\n")


def test_a_misspelled_field_of_a_helper_is_renamed_there(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = HELPER.replace("cpu_offloading = True", "sequence_paralel = True").replace("    cfg.model.cpu_offloading_num_layers = 20\n", "")
    (repo / "common.py").write_text(text)
    for (fix,) in fixes(capsys, ".", rule="MB801").values():
        assert fix["title"] == "Rename it to sequence_parallel, in shared" and fix["safety"] == "unsafe"
    main(["check", ".", "--fix", "--unsafe-fixes", "-j1"])
    assert (repo / "common.py").read_text() == text.replace("sequence_paralel", "sequence_parallel")


def test_what_was_proven_is_remembered_until_another_recipe_uses_the_helper(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mblint.cli import helper_fixes

    monkeypatch.delenv("MBLINT_NO_CACHE", raising=False)
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(repo.parent / "cache"))
    judged = helper_fixes.prove
    proofs: list[int] = []
    monkeypatch.setattr(helper_fixes, "prove", lambda *given: proofs.append(1) or judged(*given))

    def checked() -> str:
        main(["check", ".", "-j1"])
        return capsys.readouterr().out

    cold = checked()
    assert "in shared [safe]" in cold and len(proofs) == 1
    assert checked() == checked() == cold and len(proofs) == 1
    (repo / "gamma.py").write_text(RECIPE.format(name="gamma", more=HEALTHY))
    assert "in shared [unsafe, choose]" in checked() and len(proofs) == 2
