"""Version numbers and ranges."""

from __future__ import annotations

import pytest

from mblint.ruleset.versions import at_least, clauses, matches


@pytest.mark.parametrize(
    ("specifier", "version", "expected"),
    [
        (">=0.3", "0.6.2", True),
        (">=0.3,<0.6", "0.6.2", False),
        ("<0.7", "0.7.0rc1", False),
        ("==0.6.*", "0.6.2", True),
        ("==0.6.*", "0.60", False),
        ("!=0.6.*", "0.6", False),
        ("!=0.6.2", "0.6.2", False),
        ("==0.6", "0.6.0", True),
        (">0.6", "0.6.0", False),
        ("<=0.19.2", "0.19.2", True),
        (" >= 0.3 , < 1 ", "0.19", True),
    ],
)
def test_range(specifier: str, version: str, expected: bool) -> None:
    assert matches(specifier, version) is expected


@pytest.mark.parametrize("specifier", ["", "0.3", "~=0.3", ">=0.3.*", ">=x", ">=0.3,"])
def test_what_is_no_range(specifier: str) -> None:
    with pytest.raises(ValueError, match="not a version specifier"):
        clauses(specifier)


def test_a_build_counts_as_its_release() -> None:
    assert at_least("2.11.0a0+git1234", "2.11")
    assert at_least("2.14.1+cu130", "2.14.1")
    assert not at_least("2.10.9", "2.11")
    with pytest.raises(ValueError, match="not a version"):
        at_least("main", "2.11")
