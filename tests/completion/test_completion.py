"""Completion, asked of the shells themselves: each reads its script and says what it would offer."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from mblint.cli.main import COMMANDS, main
from mblint.completion.words import commands

SHELLS = ("bash", "zsh", "fish")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"NO {shell.upper()}: its completion was not tried; apt-get install {shell}")
    return found


class Asked:
    """What a shell offers after a line."""

    def __init__(self, shell: str, text: str, folder: Path) -> None:
        self.shell, self.folder = need(shell), folder
        self.name = shell
        self.file = folder / f"script.{shell}"
        self.file.write_text(text)

    def __call__(self, line: str) -> list[str]:
        return {"bash": self._bash, "zsh": self._zsh, "fish": self._fish}[self.name](line)

    def _run(self, code: str, *words: str) -> str:
        environment = {**os.environ, "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)}
        done = subprocess.run(
            [self.shell, *words, "-c", code], cwd=self.folder, capture_output=True, text=True, check=False, env=environment, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _bash(self, line: str) -> list[str]:
        # As readline does it: words apart at blanks, and at the equals sign.
        words = [word for part in line.split(" ") for word in (re.split("(=)", part) if "=" in part else [part])]
        listed = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        code = f"source {self.file}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _mblint; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return [word for word in self._run(code, "--norc").split("\n") if word]

    def _fish(self, line: str) -> list[str]:
        out = self._run(f"source {self.file}; complete -C '{line}'", "--no-config")
        return [row.partition("\t")[0] for row in out.splitlines()]

    def _zsh(self, line: str) -> list[str]:
        """Completion of zsh lives in its line editor, so one is run on a terminal of its own."""
        leader, follower = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "TERM": "dumb", "PS1": "> "}
        process = subprocess.Popen(
            [self.shell, "-f", "-i"], stdin=follower, stdout=follower, stderr=follower, cwd=self.folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(follower)
        try:
            setup = (
                f"autoload -U compinit; compinit -D -u; source {self.file}; unsetopt zle_bracketed_paste; zstyle ':completion:*' list-colors ''; "
                "LISTMAX=0; PROMPT=; setopt no_beep; stty cols 400; "
                'compadd() { builtin compadd -A __found "$@"; print -rn -- "<${(j:|:)__found}>"; builtin compadd "$@" }; print READY\n'
            )
            os.write(leader, setup.encode())
            self._read(leader, "READY", 2)
            os.write(leader, line.encode() + b"\t")
            text = self._read(leader, None, 1)
        finally:
            process.kill()
            process.wait()
            os.close(leader)
        return [word for group in re.findall(r"<([^<>\r\n]*)>", text) for word in group.split("|") if word]

    @staticmethod
    def _read(leader: int, mark: str | None, times: int) -> str:
        """Until the mark came so often, or, without one, until something came and then nothing more."""
        text, end, quiet = "", time.monotonic() + 40, 1.5
        while time.monotonic() < end:
            ready, _, _ = select.select([leader], [], [], quiet)
            if not ready:
                if mark is None and text.count("<"):
                    break
                continue
            text += os.read(leader, 1 << 16).decode("utf-8", "replace")
            if mark is not None and text.count(mark) >= times:
                break
        return text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion")
    (place / "a recipe.py").touch()
    (place / "recipes").mkdir()
    return place


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_its_script(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    asked = Asked(shell, text, folder)
    done = subprocess.run([asked.shell, "-n", str(asked.file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


CASES = {
    "mblint est": {"estimate"},
    "mblint check --form": {"--format"},
    "mblint check --format ": {"full", "sarif", "junit", "github"},
    "mblint check --select MB30": {"MB301", "MB302"},
    "mblint rule cpu-offload-with": {"cpu-offload-with-pipeline"},
    "mblint check --gpu gb": {"gb200", "gb300"},
    "mblint upstream ": {"fetch", "list", "path", "remove"},
    "mblint upstream fetch --wh": {"--wheels"},
    "mblint completion ": set(SHELLS),
}


@pytest.mark.parametrize("line", CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_what_is_offered(shell: str, line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offered = set(Asked(shell, script(shell, capsys), folder)(line))
    assert offered >= CASES[line], offered
    typed = line.rpartition(" ")[2]
    assert all(word.startswith(typed) for word in offered)


@pytest.mark.parametrize(
    "line", ["mblint est", "mblint check --format s", "mblint check --gpu gb", "mblint upstream fe", "mblint rule MB30"]
)
def test_what_zsh_offers(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = {
        "mblint est": "estimate",
        "mblint check --format s": "sarif",
        "mblint check --gpu gb": "gb200",
        "mblint upstream fe": "fetch",
        "mblint rule MB30": "MB301",
    }[line]
    assert wanted in Asked("zsh", script("zsh", capsys), folder)(line)


def test_lists_and_equals_signs_and_names_with_blanks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Asked("bash", script("bash", capsys), folder)
    assert "MB2,MB301" in asked("mblint check --select MB2,MB30")
    assert set(asked("mblint check --format=sa")) == {"sarif"}
    assert asked("mblint check a") == ["a recipe.py"]
    assert asked("mblint init re") == ["recipes"]
    assert asked("mblint check --set mod") == []
    assert asked("mblint nonsense x") == [] and asked("mblint upstream nonsense --x") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    every = commands()
    assert {command.name.split()[0] for command in every} == set(COMMANDS)
    for command in every:
        for option in command.options:
            for name in option.names:
                short = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                assert (short if shell == "fish" else name) in text, f"{command.name} {name}"


def test_the_script_of_another_shell_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
