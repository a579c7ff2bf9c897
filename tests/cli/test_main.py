"""Dispatch: exit codes, one-line errors, and what happens when something breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mblint import __version__
from mblint.cli.main import COMMANDS, main


def _run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mblint", *words], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


SHIPPED = "megatron-bridge 0.6.2 + megatron-core 0.19.2"


def test_version_is_answered_before_anything_is_imported() -> None:
    for option in ("--version", "-V"):
        done = _run(option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            f"mblint {__version__}",
            f"ships a snapshot of {SHIPPED}; --version -v tells what is judged against here",
        ]
    code = (
        "import sys; sys.argv = ['mblint', '--version']; from mblint.__main__ import main; main();"
        "print(sorted({'argparse', 'pydantic', 'rich', 'yaml', 'libcst', 're', 'ast', 'json', 'dataclasses'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); {code}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines()[2] == "[]"


def test_version_with_the_pair(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version", "-v"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"mblint {__version__}", f"shipped snapshot of {SHIPPED}"]
    assert main(["-V"]) == 0
    assert SHIPPED in capsys.readouterr().out


def test_version_names_what_the_settings_choose(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "mblint.toml").write_text('upstream = "0.5.1"\n')
    assert main(["--version", "-v"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"mblint {__version__}"
    assert second.startswith("nothing to judge against here: ") and "`mblint upstream fetch 0.5.1`" in second
    (bare_environment / "mblint.toml").write_text("upstream = [\n")
    assert main(["--version", "-v"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_start_up_needs_none_of_the_heavy_libraries() -> None:
    """Of the help too: what is imported at the top of a module is paid by everybody."""
    heavy = {
        "pydantic",
        "rich",
        "yaml",
        "libcst",
        "asyncio",
        "importlib.metadata",
        "packaging",
        "urllib.request",
    }
    for words in (["--help"], ["check", "--help"], ["explain", "--help"], ["upstream", "path"]):
        code = f"import sys; from mblint.cli.main import main; main({words!r}); print(sorted({heavy!r} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        allowed = "['packaging']" if words[-1] == "path" else "[]"  # versions of copies are compared
        assert done.stdout.splitlines()[-1] in ("[]", allowed), words


def test_help_names_every_command_and_each_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in text
        assert main([name, "--help"]) == 0
        own = capsys.readouterr().out
        assert "examples:\n" in own
        assert f"mblint {name}" in own.partition("examples:")[2]


def test_without_a_word_the_help_is_shown_and_it_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chek"], "unknown command 'chek'; did you mean 'check'?"),
        (["frobnicate"], "unknown command 'frobnicate'; commands: check, explain,"),
        (["/"], "'/' is a path, not a command; did you mean `mblint check /`?"),
        (["--versoin"], "unknown option --versoin; did you mean --version?"),
        (["check", "--selct", "x"], "unknown option --selct; did you mean --select?"),
        (["check", "--sel", "x"], "unknown option --sel; did you mean --set?"),
        (["check", "--format", "xml"], "--format: 'xml' is not one of "),
        (["check", "--output", "xml=x"], "--output: 'xml=x' is not FORMAT=FILE with a format of full,"),
        (["check", "--output", "json"], "--output: 'json' is not FORMAT=FILE"),
        (["check", "--world-size", "many"], "--world-size: 'many' is not a whole number"),
        (["check", "--world-size", "0"], "--world-size: 0 is not at least 1"),
        (["check", "--gpu", "h10"], "--gpu: 'h10' is not a known GPU type; did you mean 'h100'?"),
        (["check", "--set", "tp"], "--set: 'tp' is not KEY=VALUE, for example model.tensor"),
        (["check", "--set", "a b=1"], "--set: 'a b=1' is not KEY=VALUE"),
        (["check", "-j", "0"], "-j/--jobs: 0 is not at least 1"),
        (["check", "--new-only"], "--new-only needs --base REV"),
        (["check", "-", "a.py"], "- (standard input) cannot be mixed with other paths"),
        (["check", "-", "--launches", "-"], "both - and --launches - read standard input"),
        (["check", "--stdin-filename", "a.py"], "--stdin-filename needs - as the only path"),
        (["check", "-", "--fix"], "standard input cannot be fixed; write it to a file"),
        (["explain"], "name one of RECIPE, --recipes-from FILE or --launches FILE"),
        (["explain", "a", "--launches", "x"], "name one of RECIPE"),
        (["explain", "--launches", "x", "--diff", "y"], "--diff needs a RECIPE"),
        (["estimate"], "name recipes or --launches FILE"),
        (["estimate", "a", "--engine", "megatron-bridge"], "--engine megatron-bridge needs --python PATH"),
        (["rule"], "missing: ID|NAME"),
        (["rule", "MB999x"], "no rule is called 'MB999x'"),
        (["rules", "--select", "nothing"], "no rule is called nothing"),
        (["upstream"], "missing: fetch|list|path|remove"),
        (["upstream", "ftch"], "'ftch' is not one of"),
        (["upstream", "remove"], "name the versions to remove, or --all"),
        (["upstream", "remove", "0.0.1"], "not fetched: 0.0.1"),
        (["upstream", "fetch", "--wheels", "/nowhere"], "there is no folder /nowhere"),
        (["upstream", "fetch", "newest"], "'newest' is not a version"),
        (["upstream", "path", "x"], "'x' is not a version"),
        (["settings", "--config", "nope.toml"], "nope.toml: there is no such settings file"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_with_a_remedy(
    bare_environment: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("mblint: error: ")
    assert said in err


def test_settings_mistakes_end_a_run_with_code_2(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_environment / "mblint.toml").write_text("selct = []\nfail-on = 'no'\n")
    assert main(["rules"]) == 2
    assert [line.partition(": ")[2].partition(" `")[0] for line in capsys.readouterr().err.splitlines()] == [
        "error: mblint.toml:1: unknown key",
        "error: mblint.toml:2:",
    ]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Make `mblint settings` fail in the given way."""

    def install(error: BaseException) -> None:
        import mblint.cli.settings as command

        def fail(args: object) -> int:
            raise error

        monkeypatch.setattr(command, "run", fail)

    return install


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), RecursionError("too deep"), MemoryError(), AssertionError("a\nb"), OSError(5000, "odd")],
)
def test_an_internal_error_is_one_line_and_a_report_file(
    broken,
    bare_environment: Path,
    capsys,
    tmp_path,
    monkeypatch,
    error: BaseException,  # type: ignore[no-untyped-def]
) -> None:
    broken(error)
    assert main(["settings"]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"internal error: {type(error).__name__}" in err
    (report,) = (tmp_path / "cache" / "crashes").glob("mblint-crash-*.txt")
    assert str(report) in err
    text = report.read_text()
    assert f"mblint {__version__}" in text
    assert "Traceback" in text
    assert oct(report.stat().st_mode & 0o777) == "0o600"


def test_an_internal_error_without_a_place_for_the_report(
    broken,
    bare_environment: Path,
    capsys,
    monkeypatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setenv("MBLINT_CACHE_DIR", "/dev/null/cache")
    broken(KeyError("x"))
    assert main(["settings"]) == 3
    assert "KeyError: 'x'" in capsys.readouterr().err


def test_an_interrupt_is_130_and_quiet(broken, bare_environment: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    broken(KeyboardInterrupt())
    assert main(["settings"]) == 130
    assert capsys.readouterr().err == "mblint: interrupted\n"


def test_messages_cannot_command_the_terminal(bare_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "\x1b[31mred\x1b]0;title\x07"]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\x07" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mblint", "upstream", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr.count("\n") <= 1
    assert "Traceback" not in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mblint", "settings", "--schema"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == "mblint: error: output cannot be written: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise there")
@pytest.mark.parametrize(("words", "code"), [(["settings", "--schema"], 141), (["--help"], 0)])
def test_a_closed_pipe_is_quiet(words: list[str], code: int) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "mblint", *words], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == code  # argparse itself forgives a help that nobody reads


def test_a_terminal_without_unicode_gets_escapes(bare_environment: Path) -> None:
    (bare_environment / "mblint.toml").write_text('exclude = ["größe/→"]', encoding="utf-8")
    done = _run("settings", env={**os.environ, "PYTHONIOENCODING": "ascii"}, cwd=bare_environment)
    assert done.returncode == 0, done.stderr
    done = _run("rule", "größe→", env={**os.environ, "PYTHONIOENCODING": "ascii"}, cwd=bare_environment)
    assert done.returncode == 2
    assert "gr\\xf6\\xdfe\\u2192" in done.stderr
