"""One server for most tests of this folder: starting it and warming it up is what costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as t

from .kit import Editor, project


@pytest.fixture(scope="package")
def editor(tmp_path_factory: pytest.TempPathFactory, upstream: Path) -> Iterator[Editor]:
    """An editor with all capabilities that the server asks about, and no folder open."""
    workspace = t.WorkspaceClientCapabilities(
        code_lens=t.CodeLensWorkspaceClientCapabilities(refresh_support=True),
        did_change_watched_files=t.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
        workspace_edit=t.WorkspaceEditClientCapabilities(document_changes=True),
    )
    document = t.TextDocumentClientCapabilities(
        code_action=t.CodeActionClientCapabilities(resolve_support=t.ClientCodeActionResolveOptions(["edit"]))
    )
    editor = Editor(capabilities=t.ClientCapabilities(workspace=workspace, text_document=document))
    yield editor
    assert editor.stop() == 0
    assert editor.logged == []


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory, upstream: Path) -> Path:
    """A project that the tests share, so that upstream is read once; each test has a file of its own in it."""
    return project(tmp_path_factory.mktemp("editor") / "project", upstream)
