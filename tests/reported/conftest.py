"""What the tests of reported failures share."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.reported.kit")

from tests.reported.kit import Check  # noqa: E402


@pytest.fixture(scope="session")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    return Check(tmp_path_factory.mktemp("reported"))
