"""Loading rule files: what is wrong in one, where, and that the shipped ones come fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mblint.ruleset import load
from mblint.ruleset.load import KEPT, RuleFileError, compile_rules, load_rules, validate_files
from mblint.ruleset.locate import rules_folder

GOOD = """\
id: ACME001
name: too-many-layers
title: The model has too many layers
severity: warning
outcome: slow
when: model.num_layers > 100
message: "{model.num_layers} layers"
blame: [model.num_layers]
why: More than a hundred layers are slow.
examples:
  fails:
    - set: {model.num_layers: 101}
  passes:
    - set: {model.num_layers: 100}
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    (tmp_path / "pack").mkdir()
    return tmp_path / "pack"


def write(pack: Path, text: str, name: str = "rule.yaml") -> Path:
    path = pack / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_pack_is_added_to_the_shipped_rules(pack: Path) -> None:
    write(pack, GOOD)
    rules = load_rules([pack])
    assert "ACME001" in {rule.id for rule in rules}
    assert len(rules) == len(load_rules()) + 1
    assert [rule.id for rule in rules] == sorted(rule.id for rule in rules)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("when: model.num_layers > 100", "when: model.num_layers >", 6, "not an expression"),
        ("when: model.num_layers > 100", "when: modl.num_layers > 100", 6, "neither a key"),
        ("when: model.num_layers > 100", "when: open('x')", 6, "no function open"),
        ("severity: warning", "severity: bad", 4, "error"),
        ("severity: warning", "severty: warning", 4, "did you mean severity"),
        ("blame: [model.num_layers]", "blame: [nothing.x]", 8, "neither a key"),
        ('"{model.num_layers} layers"', '"{model.num_layers layers"', 7, "not closed"),
        ("id: ACME001", "id: acme-1", 1, "pattern"),
        ("id: ACME001", "id: ACME001\nid: ACME002", 2, "given twice"),
        ("id: ACME001", "id: ACME001\nversions: latest", 2, "not a version specifier"),
        ("id: ACME001", "id: &x ACME001\ntags: *x", 1, "aliases"),
        ("    - set: {model.num_layers: 101}\n", "    - {}\n", 12, "one of `set`, `python` and `shell`"),
        ("  passes:\n    - set: {model.num_layers: 100}\n", "", 10, "passes"),
        ("id: ACME001", "id: [ACME001", 2, "not valid YAML"),
        ("id: ACME001", "id: !!python/object/apply:os.system [ls]", 1, "not valid YAML"),
        ("id: ACME001", "id: ACME001\nenforced_by: [somewhere]", 2, "pattern"),
        ("id: ACME001", "id: ACME001\nfixes: [{title: nothing, safety: safe}]", 2, "at least one key"),
        (
            "id: ACME001",
            "id: ACME001\nfixes: [{title: x, set: {env.X: 1}}]",
            2,
            "not a key that a fix can change",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(pack: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    path = write(pack, GOOD.replace(old, new))
    with pytest.raises(RuleFileError) as caught:
        load_rules([pack])
    assert any(span.line == line and words in message for span, message in caught.value.problems), caught.value.problems
    assert str(path) in str(caught.value)


def test_all_problems_of_all_files_are_said(pack: Path) -> None:
    write(pack, GOOD.replace("severity: warning", "severity: bad").replace("outcome: slow", "outcome: bad"))
    write(pack, "- not a mapping", "other.yaml")
    with pytest.raises(RuleFileError) as caught:
        load_rules([pack])
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["", "just text", "a: b: c", "\x00", "[" * 3000, "a: " * 2000, "? " * 5000, "{" * 5000])
def test_hostile_files_are_refused_in_words(pack: Path, text: str) -> None:
    write(pack, text)
    with pytest.raises(RuleFileError):
        load_rules([pack])


def test_other_things_than_files(pack: Path) -> None:
    with pytest.raises(RuleFileError, match="no such file"):
        load_rules([pack / "missing.yaml"])
    (pack / "latin.yaml").write_bytes(b"id: \xff\xfe")
    with pytest.raises(RuleFileError, match="UTF-8"):
        load_rules([pack])
    (pack / "latin.yaml").write_bytes(b"# " + b"x" * 300_000)
    with pytest.raises(RuleFileError, match="larger"):
        load_rules([pack])
    (pack / "latin.yaml").unlink()
    (pack / "folder.yaml").mkdir()
    assert load_rules([pack])


def test_an_id_or_a_name_exists_once(pack: Path) -> None:
    write(pack, GOOD.replace("ACME001", "MB301"))
    with pytest.raises(RuleFileError, match="MB301 is already the name of a rule"):
        load_rules([pack])
    write(pack, GOOD.replace("too-many-layers", "cpu-offload-with-pipeline"))
    with pytest.raises(RuleFileError, match="cpu-offload-with-pipeline is already"):
        load_rules([pack])
    write(pack, GOOD)
    write(pack, GOOD, "again.yaml")
    with pytest.raises(RuleFileError, match="ACME001"):
        load_rules([pack])


def test_the_cache_is_used_and_a_damaged_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(tmp_path))
    first = {rule.id: rule.data for rule in load_rules()}
    (cached,) = tmp_path.glob("rules-*.json")
    assert {rule.id: rule.data for rule in load_rules()} == first
    for damage in (b"", b"{", b"[]", b'{"format": 1, "rules": [1]}', b'{"format": 99, "rules": []}'):
        cached.write_bytes(damage)
        assert {rule.id: rule.data for rule in load_rules()} == first
    content = json.loads(cached.read_text(encoding="utf-8"))
    assert len(content["rules"]) == len(first)


def test_old_compiled_copies_go_and_the_newest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(tmp_path))
    others = [tmp_path / f"rules-{number:016x}.json" for number in range(20)] + [tmp_path / "rules-abc.part"]
    for age, path in enumerate(others):
        path.write_text("{}")
        os.utime(path, (1e9 - age, 1e9 - age))
    (tmp_path / "results").mkdir()
    load_rules()
    (own,) = set(tmp_path.glob("rules-*")) - set(others)
    assert set(tmp_path.glob("rules-*")) == {own, *others[: KEPT - 1]}
    assert (tmp_path / "results").is_dir()


def test_runs_that_clean_up_at_once_do_not_disturb_one_another(tmp_path: Path) -> None:
    """Each has its own rules folder, so all of them write, and all take the oldest copies away."""
    program = (
        "import sys; from pathlib import Path; from mblint.ruleset import load; cache = Path(sys.argv[1])\n"
        "for number in range(40): load._write(cache / f'rules-{sys.argv[2]}-{number}.json', [])"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    runs = [subprocess.Popen([*words, str(number)], stderr=subprocess.PIPE, text=True) for number in range(4)]
    said = [run.communicate(timeout=60)[1] for run in runs]
    assert said == [""] * 4 and [run.returncode for run in runs] == [0] * 4
    left = sorted(path.name for path in tmp_path.iterdir())
    assert 1 <= len(left) <= KEPT and not [name for name in left if name.endswith(".part")]


def test_warm_loading_needs_neither_yaml_nor_pydantic(tmp_path: Path) -> None:
    program = (
        "import sys; from mblint.ruleset.load import load_rules; rules = load_rules(); "
        "rules[0].name; print(len(rules), sorted({'yaml', 'pydantic', 'libcst', 'rich'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "MBLINT_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[1] == f"{len(load_rules())} []\n"


def test_a_cache_that_cannot_be_written_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(blocked / "below"))
    assert load_rules()


def test_the_compiled_copy_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = compile_rules(rules_folder())
    assert text == compile_rules(rules_folder())
    (tmp_path / "compiled.json").write_text(text, encoding="utf-8")
    expected = [rule.id for rule in load_rules()]
    monkeypatch.setattr(load, "rules_folder", lambda: tmp_path)
    assert [rule.id for rule in load_rules()] == expected


def test_shipped_files_validate(tmp_path: Path) -> None:
    assert validate_files([rules_folder()])
