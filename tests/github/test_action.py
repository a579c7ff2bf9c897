"""The action: its shell steps are run as they stand, in order, with what GitHub would put into them."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
BASH = shutil.which("bash")

RECIPE = """\
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def tiny_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = GPTModelProvider(num_layers=8, hidden_size=1024, num_attention_heads=16, seq_length=4096)
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.cpu_offloading = True
    cfg.model.cpu_offloading_num_layers = 4
    cfg.train.global_batch_size = 32
    cfg.train.micro_batch_size = 1
    return cfg
"""

GH = """\
import json, os, sys
words = sys.argv[1:]
files = {}
for word in words:
    name, _, value = word.partition("=@")
    if value:
        files[name] = open(value, encoding="utf-8").read()
with open(os.environ["GH_LOG"], "a") as log:
    log.write(json.dumps({"words": words, "files": files, "token": os.environ.get("GH_TOKEN")}) + "\\n")
if os.environ.get("GH_FAILS"):
    sys.exit("HTTP 403")
if "--paginate" in words:
    print(os.environ.get("GH_COMMENTS", ""))
"""

pytestmark = pytest.mark.skipif(BASH is None or os.name == "nt", reason="needs bash")


class Runner:
    """As much of GitHub's runner as the action uses."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace, self.temp, self.tools = folder / "work", folder / "temp", folder / "tools"
        for each in (self.workspace, self.temp, self.tools):
            each.mkdir()
        self.summary, self.gh_log = folder / "summary.md", folder / "gh.jsonl"
        self.summary.touch()
        self.inputs = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
        self.inputs["token"] = "t0ken"
        self.outputs: dict[str, dict[str, str]] = {}
        self.pull = "7"
        self.env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        (self.tools / "gh").write_text(f"#!{sys.executable}\n{GH}")
        (self.tools / "gh").chmod(0o755)
        self.env |= {
            "PATH": f"{self.tools}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_SHA": "a" * 40,
            "GITHUB_REF": "refs/pull/7/merge",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GH_LOG": str(self.gh_log),
        }

    def value(self, text: str) -> str:
        """An expression of the action, replaced."""

        def one(match: re.Match[str]) -> str:
            words = match[1].split(".")
            if words[0] == "inputs":
                return self.inputs[words[1]]
            if words[0] == "steps":
                return self.outputs.get(words[1], {}).get(words[3], "")
            return {
                "github.action_path": str(ROOT), "runner.temp": str(self.temp), "github.event.pull_request.number": self.pull,
            }[match[1]]  # fmt: skip

        return re.sub(r"\$\{\{ (.*?) \}\}", one, text)

    def step(self, name: str) -> subprocess.CompletedProcess[str]:
        (step,) = [step for step in STEPS if step["name"] == name]
        output = self.temp / "output"
        output.write_text("")
        env = {**self.env, "GITHUB_OUTPUT": str(output)}
        env |= {key: self.value(str(value)) for key, value in step.get("env", {}).items()}
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        # As the runner starts `shell: bash`.
        done = subprocess.run(
            [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "id" in step:
            pairs = (line.partition("=") for line in output.read_text().splitlines())
            self.outputs[step["id"]] = {key: value for key, _, value in pairs}
        return done

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.gh_log.read_text().splitlines()] if self.gh_log.exists() else []


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(tmp_path, monkeypatch)


@pytest.fixture
def installed(runner: Runner) -> Runner:
    """As after the first step, with this environment in place of the new one."""
    folder = runner.temp / "mblint" / "venv" / "bin"
    folder.mkdir(parents=True)
    for name, words in {"python": "", "mblint": " -m mblint"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (folder / name).chmod(0o755)
    runner.env["PYTHONPATH"] = str(ROOT)
    return runner


@pytest.fixture
def recorded(runner: Runner) -> Runner:
    """With an mblint that writes down its words, makes the reports, and ends with $CODE."""
    folder = runner.temp / "mblint" / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (folder / "mblint").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > "$MBLINT_HOME/words.$1"\n[ "$1" = check ] || exit 0\n'
        'echo "{}" > "$MBLINT_HOME/mblint.sarif"\nprintf "## mblint\\n\\n| a |\\n" > "$MBLINT_HOME/mblint.md"\nexit "${CODE:-0}"\n'
    )
    (folder / "mblint").chmod(0o755)
    return runner


def words(runner: Runner, command: str = "check") -> list[str]:
    return (runner.temp / "mblint" / f"words.{command}").read_text().splitlines()


def test_no_input_is_pasted_into_a_script_and_no_other_action_is_called() -> None:
    assert ACTION["runs"]["using"] == "composite"
    for step in STEPS:
        assert "uses" not in step
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], step["name"]
    assert {"version", "paths", "args", "upstream", "base", "sarif-upload", "comment"} <= set(ACTION["inputs"])
    assert all(spec["description"] for spec in ACTION["inputs"].values())


@pytest.mark.slow
def test_installing_from_the_action_s_own_code(runner: Runner) -> None:
    runner.inputs["python"] = sys.executable
    runner.env["PIP_NO_COMPILE"] = "1"
    done = runner.step("Install mblint")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^mblint \d", done.stdout, re.MULTILINE)


def test_an_old_interpreter_is_said_plainly(runner: Runner) -> None:
    (runner.tools / "python3").write_text("#!/bin/sh\nexit 1\n")
    (runner.tools / "python3").chmod(0o755)
    done = runner.step("Install mblint")
    assert done.returncode == 2
    assert "::error title=mblint::python3 is not Python 3.11" in done.stdout


def test_findings_are_annotations_a_summary_and_the_result(installed: Runner, upstream: Path) -> None:
    (installed.workspace / "tiny.py").write_text(RECIPE)
    (installed.workspace / "mblint.toml").write_text("")
    installed.inputs |= {"upstream": str(upstream), "paths": "tiny.py\n", "args": "--world-size 8 --gpu h100"}
    done = installed.step("Judge")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"^::error file=tiny\.py,line=10,col=5,.*title=MB301 cpu-offload-with-pipeline::",
        done.stdout,
        re.MULTILINE,
    )
    outputs = installed.outputs["check"]
    assert outputs["exit-code"] == "1"
    assert "MB301 cpu-offload-with-pipeline" in installed.summary.read_text()
    sarif = json.loads(Path(outputs["sarif-file"]).read_text())
    assert {result["ruleId"] for result in sarif["runs"][0]["results"]} >= {"MB301"}
    assert installed.step("Result").returncode == 1


def test_inputs_become_words_and_nothing_is_expanded(recorded: Runner) -> None:
    recorded.inputs |= {
        "paths": "recipes\nconf $(touch pwned)/x.yaml\n\n",
        "args": "--ignore MB204 --set 'model.a=b c' --config \"$HOME\"",
        "upstream": "0.6.2,0.19.0",
        "base": "auto",
    }
    assert recorded.step("Judge").returncode == 0
    home = recorded.temp / "mblint"
    assert words(recorded) == [
        "check", "--format", "github", "--output", f"sarif={home}/mblint.sarif", "--output", f"markdown={home}/mblint.md",
        "--upstream", "0.6.2,0.19.0", "--base", "auto", "--new-only",
        "--ignore", "MB204", "--set", "model.a=b c", "--config", "$HOME",
        "recipes", "conf $(touch pwned)/x.yaml",
    ]  # fmt: skip
    assert words(recorded, "upstream") == ["upstream", "fetch", "--quiet", "0.6.2", "--core", "0.19.0"]
    assert not (recorded.workspace / "pwned").exists()


def test_the_words_are_options_that_the_program_has(recorded: Runner) -> None:
    from mblint.cli.main import main

    recorded.inputs |= {"upstream": "v0.6.2", "base": "main"}
    recorded.step("Judge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mblint.cli.check.run", lambda args: 0)
        patch.setattr("mblint.cli.upstream.run", lambda args: 0)
        assert main(words(recorded)) == 0
        assert main(words(recorded, "upstream")) == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [("0", ""), ("1", ""), ("2", "wrong usage"), ("3", "mblint failed"), ("4", "nothing to check")],
)
def test_the_result_is_the_program_s_exit_code(recorded: Runner, code: str, said: str) -> None:
    recorded.env["CODE"] = code
    assert recorded.step("Judge").returncode == 0
    done = recorded.step("Result")
    assert done.returncode == int(code)
    assert said in done.stdout and ("::error" in done.stdout) == bool(said)


def test_nothing_is_sent_unless_asked(recorded: Runner) -> None:
    recorded.env["CODE"] = "1"
    recorded.step("Judge")
    for name in ("Upload to code scanning", "Comment on the pull request"):
        assert recorded.step(name).returncode == 0
    assert recorded.calls() == []


def test_the_upload_is_the_report_packed(recorded: Runner) -> None:
    recorded.inputs["sarif-upload"] = "true"
    recorded.step("Judge")
    done = recorded.step("Upload to code scanning")
    assert (done.returncode, done.stdout) == (0, "")
    (call,) = recorded.calls()
    assert call["token"] == "t0ken"
    assert "repos/owner/name/code-scanning/sarifs" in call["words"]
    assert {f"commit_sha={'a' * 40}", "ref=refs/pull/7/merge"} <= set(call["words"])
    assert gzip.decompress(base64.b64decode(call["files"]["sarif"], validate=True)) == b"{}\n"


def test_one_comment_is_made_then_kept_up_to_date(recorded: Runner) -> None:
    recorded.inputs["comment"] = "true"
    recorded.env["CODE"] = "1"
    recorded.step("Judge")
    assert recorded.step("Comment on the pull request").returncode == 0
    looked, made = recorded.calls()
    assert "repos/owner/name/issues/7/comments" in looked["words"]
    assert made["words"][made["words"].index("--method") + 1] == "POST"
    assert made["files"]["body"] == "<!-- mblint -->\n## mblint\n\n| a |\n"
    recorded.gh_log.unlink()
    recorded.env["GH_COMMENTS"] = "41\n42"
    assert recorded.step("Comment on the pull request").returncode == 0
    _, changed = recorded.calls()
    assert changed["words"][changed["words"].index("--method") + 1] == "PATCH"
    assert "repos/owner/name/issues/comments/41" in changed["words"]


def test_a_clean_result_makes_no_comment(recorded: Runner) -> None:
    recorded.inputs["comment"] = "true"
    recorded.step("Judge")
    assert recorded.step("Comment on the pull request").returncode == 0
    assert len(recorded.calls()) == 1  # looked for an older one, and left it at that


def test_outside_a_pull_request_there_is_no_comment(recorded: Runner) -> None:
    recorded.inputs["comment"], recorded.pull, recorded.env["CODE"] = "true", "", "1"
    recorded.step("Judge")
    assert recorded.step("Comment on the pull request").returncode == 0
    assert recorded.calls() == []


def test_a_long_report_is_cut_between_lines(recorded: Runner) -> None:
    recorded.inputs["comment"], recorded.env["CODE"] = "true", "1"
    recorded.step("Judge")
    row = "| ❌ " + "ä" * 400 + " |\n"
    Path(recorded.outputs["check"]["markdown-file"]).write_text(row * 500, encoding="utf-8")
    recorded.step("Comment on the pull request")
    body = recorded.calls()[-1]["files"]["body"]
    assert len(body) < 65536
    assert body.endswith("The rest is in the job summary.\n")
    assert set(body.splitlines()[1:-2]) == {row.rstrip("\n")}


@pytest.mark.parametrize("name", ["Upload to code scanning", "Comment on the pull request"])
def test_a_token_without_rights_is_a_warning(recorded: Runner, name: str) -> None:
    recorded.inputs |= {"comment": "true", "sarif-upload": "true"}
    recorded.env |= {"CODE": "1", "GH_FAILS": "1"}
    recorded.step("Judge")
    done = recorded.step(name)
    assert done.returncode == 0
    assert "::warning title=mblint::" in done.stdout


def test_zizmor_finds_nothing_in_the_action_and_the_workflows() -> None:
    own = Path(sys.executable).parent / "zizmor"
    zizmor = str(own) if own.exists() else shutil.which("zizmor")
    if zizmor is None:
        pytest.skip("zizmor is not installed")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", "action.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_shellcheck_finds_nothing_in_the_steps() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("NO SHELLCHECK: the action's steps were not looked at; apt-get install shellcheck")
    for step in STEPS:
        done = subprocess.run([shellcheck, "-s", "bash", "-"], input=step["run"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{step['name']}: {done.stdout}"


def test_the_summary_has_the_memory_of_launches_that_start(installed: Runner, upstream: Path) -> None:
    (installed.workspace / "fits_8gpu_h100.py").write_text(
        RECIPE.replace("= True", "= False").replace("seq_length=4096)", "seq_length=4096, vocab_size=32000)")
    )
    installed.inputs |= {"paths": "fits_8gpu_h100.py", "args": "--world-size 8 --gpu h100", "upstream": str(upstream)}
    assert installed.step("Judge").returncode == 0
    summary = installed.summary.read_text()
    assert re.search(r"\| `fits_8gpu_h100:tiny_config` \| h100 \| \d+\.\d GiB \| 79\.1 GiB \| [█░]{10} \d+% \|", summary), summary
