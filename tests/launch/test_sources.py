"""A session whose project's files have other texts for a while: what a change reaches is read again, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from mblint.evaluate.modules import Module
from mblint.launch.session import Session
from mblint.upstream.locate import snapshot

FILES = {
    "sizes.py": "TP = 1\n",
    "helper.py": "from sizes import TP\n\ndef tp():\n    return TP\n",
    "recipe.py": "import helper\n\nTP = helper.tp()\n",
    "other.py": "TP = 8\n",
}


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return Session(snapshot("a test"), [tmp_path])


def _value(session: Session, name: str) -> object:
    module = session.modules.find(name)
    return module.lookup("TP") if isinstance(module, Module) else None


def test_a_changed_file_reaches_those_that_import_it(session: Session, tmp_path: Path) -> None:
    assert (_value(session, "recipe"), _value(session, "other")) == (1, 8)
    other = session.modules.find("other")
    session.replace_sources({str(tmp_path / "sizes.py"): "TP = 2\n"})
    assert (_value(session, "recipe"), _value(session, "other")) == (2, 8)
    assert session.modules.find("other") is other, "nothing that changed reaches it"
    session.replace_sources({str(tmp_path / "sizes.py"): "TP = 4\n"})
    assert _value(session, "recipe") == 4
    session.replace_sources({})
    assert _value(session, "recipe") == 1


def test_a_file_that_comes_may_be_what_a_name_means(session: Session, tmp_path: Path) -> None:
    assert _value(session, "recipe") == 1
    package = {str(tmp_path / "sizes" / "__init__.py"): "TP = 16\n"}
    session.replace_sources(package)
    assert _value(session, "recipe") == 16, "a package comes before a module of its name"
    session.replace_sources({})
    assert _value(session, "recipe") == 1


def test_a_file_that_goes_is_not_found(session: Session, tmp_path: Path) -> None:
    assert _value(session, "other") == 8
    session.replace_sources({str(tmp_path / "other.py"): None})
    assert _value(session, "other") is None
    session.replace_sources({})
    assert _value(session, "other") == 8


def test_files_that_were_written_are_read_again(session: Session, tmp_path: Path) -> None:
    assert _value(session, "recipe") == 1
    (tmp_path / "sizes.py").write_text("TP = 2\n")
    session.replace_sources({})
    assert _value(session, "recipe") == 1, "no text was replaced"
    session.reread()
    assert _value(session, "recipe") == 2


def test_what_was_compiled_goes_with_its_module(session: Session, tmp_path: Path) -> None:
    """Thousands of edits are tried in one run."""
    for size in range(20):
        session.replace_sources({str(tmp_path / "helper.py"): f"def tp():\n    return {size}\n"})
        assert _value(session, "recipe") == size
    assert len(session.machine.compiled) < 5
    assert sum(isinstance(module, Module) for module in session.modules.loaded.values()) < 5
