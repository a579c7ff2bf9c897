"""What editors get wrong and servers must not: units of columns, odd URIs, several folders, cancelled questions, endings."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from lsprotocol import types as t

from .kit import RECIPE, Editor, line_of, project

BROKEN_LAYERS = RECIPE.replace("num_layers=24", "num_layers=22")
WIDE = BROKEN_LAYERS.replace("    cfg.model.pipeline", '    """🚀 größer"""; cfg.model.pipeline')


def test_columns_count_utf16_units(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "weit größer 🚀 #1%.py", WIDE)
    entry = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
    line = WIDE.splitlines()[entry.range.start.line]
    start = len(line[: line.index("cfg.model.pipeline")].encode("utf-16-le")) // 2
    assert entry.range.start.character == start
    assert entry.range.end.character == start + len("cfg.model.pipeline_model_parallel_size")
    said = editor.hover(uri, entry.range.start.line, start + 14)
    assert said is not None and said.range is not None and said.range.start.character == start
    # An edit behind the rocket hits what it is meant for.
    value = len(line.encode("utf-16-le")) // 2
    editor.edit(uri, entry.range.start.line, value - 1, value, "2")
    assert "MB201" not in editor.codes(uri)


def test_other_encodings_are_agreed_on(tmp_path: Path, upstream: Path) -> None:
    encoding = t.PositionEncodingKind.Utf8
    root = project(tmp_path / "project", upstream)
    general = t.GeneralClientCapabilities(position_encodings=[encoding])
    editor = Editor(capabilities=t.ClientCapabilities(general=general), folders=[root])
    try:
        assert editor.ready.capabilities.position_encoding == encoding
        uri = editor.open(root / "recipe.py", WIDE)
        entry = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
        line = WIDE.splitlines()[entry.range.start.line]
        before = line[: line.index("cfg.model.pipeline")]
        assert entry.range.start.character == len(before.encode())
    finally:
        assert editor.stop() == 0


def test_a_buffer_without_a_file_is_judged_and_other_schemes_are_left_alone(tmp_path: Path, upstream: Path) -> None:
    root = project(tmp_path / "project", upstream)
    editor = Editor(folders=[root])
    try:
        uri = editor.open("untitled:Untitled-1", BROKEN_LAYERS)
        assert "MB201" in editor.codes(uri)
        assert sorted(path.name for path in root.iterdir()) == [".git", "mblint.toml"]
        for odd in (
            "git:/x/recipe.py?%7B%22ref%22%3A%22~%22%7D",
            "vscode-notebook-cell:/x/n.ipynb#W0s",
            "file:///a%00b.py",
            "",
        ):
            editor.open(odd, BROKEN_LAYERS)
            assert editor.hover(odd, 9, 20) is None
            assert editor.lenses(odd) == [] and editor.complete(odd, 9, 14) == [] and editor.actions(odd, 9) == []
            editor.change(odd, "x")
            editor.close(odd)
        assert not any(entry.uri == "" and entry.diagnostics for entry in editor.history)
        assert editor.hover("file:///never/opened.py", 1, 1) is None
        assert editor.logged == [] and editor.shown == []
        editor.open("http://[::1", BROKEN_LAYERS)  # no URI at all
        editor.wait(lambda: bool(editor.logged))
        assert editor.shown == [] and "MB201" in editor.codes(uri)
    finally:
        assert editor.stop() == 0


def test_each_folder_has_its_own_settings(editor: Editor, tmp_path: Path, upstream: Path) -> None:
    first = project(tmp_path / "first", upstream, 'ignore = ["MB201"]\n')
    second = project(tmp_path / "second", upstream)
    one, two = editor.open(first / "recipe.py", BROKEN_LAYERS), editor.open(second / "recipe.py", BROKEN_LAYERS)
    assert "MB201" not in editor.codes(one)
    assert "MB201" in editor.codes(two)
    added = t.WorkspaceFoldersChangeEvent([t.WorkspaceFolder(first.as_uri(), "first")], [])
    editor.loop.call_soon_threadsafe(editor.client.workspace_did_change_workspace_folders, t.DidChangeWorkspaceFoldersParams(added))
    editor.change(one, BROKEN_LAYERS + "\n")
    assert "MB201" not in editor.codes(one)


def test_a_question_that_is_cancelled_ends_and_the_next_is_answered(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "cancelled.py", RECIPE)
    editor.diagnostics(uri)

    async def ask_and_cancel() -> str:
        params = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(9, 20))
        futures = [editor.client.protocol.send_request("textDocument/hover", params, msg_id=f"cancelled-{number}") for number in range(6)]
        for number in range(6):
            editor.client.cancel_request(t.CancelParams(id=f"cancelled-{number}"))
        ends = await asyncio.gather(*(asyncio.wrap_future(future) for future in futures), return_exceptions=True)
        return " ".join(type(end).__name__ for end in ends)

    assert "RequestCancelled" in editor.run(ask_and_cancel())
    assert editor.hover(uri, 9, 20) is not None


def test_a_burst_of_changes_ends_with_the_last_text(editor: Editor, shared: Path) -> None:
    uri = editor.open(shared / "burst.py", RECIPE)
    editor.diagnostics(uri)
    for number in range(30):
        editor.change(uri, BROKEN_LAYERS if number % 2 == 0 else RECIPE.replace("def small", "def (small"))
    editor.change(uri, BROKEN_LAYERS)
    assert "MB201" in editor.codes(uri) and "MB901" not in editor.codes(uri)
    shown = [entry for entry in editor.history if entry.uri == uri]
    assert len(shown) < 20  # most of what was typed over was never judged
    versions = [entry.version or 0 for entry in shown]
    assert versions == sorted(versions)


def test_the_server_asks_for_the_files_that_matter(editor: Editor) -> None:
    editor.wait(lambda: bool(editor.registered))
    patterns = [watcher["globPattern"] if isinstance(watcher, dict) else watcher.globPattern for watcher in _watchers(editor)]
    assert any("pyproject" in pattern for pattern in patterns) and any(".py" in pattern for pattern in patterns)


def _watchers(editor: Editor) -> list[object]:
    options = editor.registered[0].register_options
    return list(options["watchers"] if isinstance(options, dict) else options.watchers)  # type: ignore[union-attr, index]


def test_without_pygls_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls").mkdir()
    (tmp_path / "pygls" / "__init__.py").write_text("raise ImportError('no', name='pygls')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "mblint", "server"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.strip()
        == "mblint: error: the server for editors needs pygls, which is not installed; pip install '.[lsp]' in a checkout of mblint"
    ), done.stderr


def test_an_editor_that_dies_takes_the_server_with_it(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-m", "mblint", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30) is not None


def test_line_ends_of_windows_and_others(editor: Editor, shared: Path) -> None:
    text = BROKEN_LAYERS.replace("    cfg.dataset.seq_length", "    # form\x0cfeed \u2028 and\n    cfg.dataset.seq_length").replace(
        "\n", "\r\n"
    )
    uri = editor.open(shared / "windows.py", text)
    entry = next(entry for entry in editor.diagnostics(uri) if entry.code == "MB201")
    assert entry.range.start.line == line_of(text, "cfg.model.pipeline")
    line = line_of(text, "cfg.train.micro_batch_size")
    row = text.split("\r\n")[line]
    editor.edit(uri, line, len(row) - 1, len(row), "1\r\n    cfg.model.pipeline_model_parallel_size = 2")
    assert "MB201" not in editor.codes(uri)
