"""Which keys a launch is left to supply."""

from __future__ import annotations

import pytest

from mblint.judging.path import _left_open


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("checkpoint.load", None, ["checkpoint.load"]),
        ("checkpoint.load", "/there", []),
        ("checkpoint.save_interval", None, []),
        ("dataset.dataset_root", "", ["dataset.dataset_root"]),
        ("dataset.source.load_kwargs", {"data_files": {"train": None}}, ["dataset.source.load_kwargs.data_files.train"]),
        ("dataset.source.load_kwargs", {"data_files": {"train": "a.json"}}, []),
        ("dataset.source.load_kwargs", {"data_files": None, "split": None}, ["dataset.source.load_kwargs.data_files"]),
    ],
)
def test_paths_that_are_not_given(key: str, value: object, names: list[str]) -> None:
    assert _left_open(key, value) == names
