"""An editor for the tests: a real client of the language server protocol that starts `mblint server` and talks to it over stdio."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lsprotocol import types as t
from pygls.lsp.client import LanguageClient

from mblint.server.documents import uri_of

SECONDS = 90.0
"""Longer than anything takes on a busy machine; whoever waits that long has failed."""

RECIPE = '''"""Recipes."""
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.config import ConfigContainer


def small_config() -> ConfigContainer:
    cfg = _pretrain_common()
    cfg.model = GPTModelProvider(num_layers=24, hidden_size=2048, num_attention_heads=16, seq_length=4096, vocab_size=128256)
    cfg.model.pipeline_model_parallel_size = 4
    cfg.dataset.seq_length = 4096
    cfg.dataset.blend = (["/data/web_text_document"], [1.0])
    cfg.train.train_iters = 10_000
    cfg.train.micro_batch_size = 1
    cfg.train.global_batch_size = 32
    return cfg
'''
"""A recipe that fits its eight GPUs; `num_layers=22` cannot be cut into its four stages."""


class Editor:
    """A client with its own event loop; every method waits for what it asks."""

    def __init__(self, *arguments: str, capabilities: t.ClientCapabilities | None = None, folders: list[Path] | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.published: dict[str, t.PublishDiagnosticsParams] = {}
        self.history: list[t.PublishDiagnosticsParams] = []
        self.shown: list[str] = []
        self.logged: list[str] = []
        self.asked: list[str] = []
        self.registered: list[t.Registration] = []
        self.news = threading.Condition()
        self.versions: dict[str, int] = {}
        self.client = LanguageClient("tests", "1")
        self._listen()
        self.run(self.client.start_io(sys.executable, "-m", "mblint", "server", *arguments))
        given = [t.WorkspaceFolder(uri_of(str(folder)), folder.name) for folder in folders or []]
        self.ready = self.run(
            self.client.initialize_async(
                t.InitializeParams(
                    capabilities=capabilities or t.ClientCapabilities(),
                    root_uri=given[0].uri if given else None,
                    workspace_folders=given or None,
                )
            )
        )
        self.client.initialized(t.InitializedParams())

    def _listen(self) -> None:
        client = self.client

        def note(change: Any) -> None:
            with self.news:
                change()
                self.news.notify_all()

        @client.feature(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: t.PublishDiagnosticsParams) -> None:
            note(lambda: (self.published.update({params.uri: params}), self.history.append(params)))

        @client.feature(t.WINDOW_SHOW_MESSAGE)
        def _(params: t.ShowMessageParams) -> None:
            note(lambda: self.shown.append(params.message))

        @client.feature(t.WINDOW_LOG_MESSAGE)
        def _(params: t.LogMessageParams) -> None:
            note(lambda: self.logged.append(params.message))

        @client.feature(t.WORKSPACE_CODE_LENS_REFRESH)
        def _(params: Any) -> None:
            note(lambda: self.asked.append("lenses"))

        @client.feature(t.CLIENT_REGISTER_CAPABILITY)
        def _(params: t.RegistrationParams) -> None:
            note(lambda: self.registered.extend(params.registrations))

    def run(self, work: Coroutine[Any, Any, Any], timeout: float = SECONDS) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def wait(self, done: Any, timeout: float = SECONDS) -> None:
        with self.news:
            assert self.news.wait_for(done, timeout), (self.published, self.shown, self.logged)

    # --- documents -----------------------------------------------------------------------------------------------

    def open(self, target: Path | str, text: str | None = None, language: str = "python") -> str:
        """Open a file (written with the text, if it is not there) or a URI; gives the URI."""
        if isinstance(target, Path):
            if not target.exists():
                target.write_text(text or "", encoding="utf-8", newline="")
            content = text if text is not None else target.read_text(encoding="utf-8")
            uri = uri_of(str(target))
        else:
            uri, content = target, text or ""
        self.versions[uri] = 1
        with self.news:
            self.published.pop(uri, None)
        item = t.TextDocumentItem(uri, language, 1, content)
        self.loop.call_soon_threadsafe(self.client.text_document_did_open, t.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str) -> int:
        """Replace the whole text; gives the version."""
        return self._change(uri, t.TextDocumentContentChangeWholeDocument(text))

    def edit(self, uri: str, line: int, start: int, end: int, text: str) -> int:
        """Replace a part of a line (all from 0, in UTF-16 units)."""
        place = t.Range(t.Position(line, start), t.Position(line, end))
        return self._change(uri, t.TextDocumentContentChangePartial(range=place, text=text))

    def _change(self, uri: str, change: Any) -> int:
        self.versions[uri] += 1
        params = t.DidChangeTextDocumentParams(t.VersionedTextDocumentIdentifier(version=self.versions[uri], uri=uri), [change])
        self.loop.call_soon_threadsafe(self.client.text_document_did_change, params)
        return self.versions[uri]

    def close(self, uri: str) -> None:
        self.loop.call_soon_threadsafe(self.client.text_document_did_close, t.DidCloseTextDocumentParams(t.TextDocumentIdentifier(uri)))

    def save(self, uri: str) -> None:
        self.loop.call_soon_threadsafe(self.client.text_document_did_save, t.DidSaveTextDocumentParams(t.TextDocumentIdentifier(uri)))

    def watched(self, path: Path, kind: t.FileChangeType = t.FileChangeType.Changed) -> None:
        params = t.DidChangeWatchedFilesParams([t.FileEvent(uri_of(str(path)), kind)])
        self.loop.call_soon_threadsafe(self.client.workspace_did_change_watched_files, params)

    def diagnostics(self, uri: str, version: int | None = None) -> list[t.Diagnostic]:
        """What was published for the document's present version."""
        wanted = version if version is not None else self.versions[uri]
        self.wait(lambda: uri in self.published and self.published[uri].version == wanted)
        return list(self.published[uri].diagnostics)

    def until(self, uri: str, condition: Any) -> list[t.Diagnostic]:
        """Wait until the diagnostics of a URI are as wanted."""
        self.wait(lambda: uri in self.published and condition(list(self.published[uri].diagnostics)))
        return list(self.published[uri].diagnostics)

    def codes(self, uri: str) -> list[str]:
        return [str(entry.code) for entry in self.diagnostics(uri)]

    # --- questions -----------------------------------------------------------------------------------------------

    def hover(self, uri: str, line: int, character: int) -> t.Hover | None:
        params = t.HoverParams(t.TextDocumentIdentifier(uri), t.Position(line, character))
        found: t.Hover | None = self.run(self.client.text_document_hover_async(params))
        return found

    def hovered(self, uri: str, line: int, character: int) -> str:
        found = self.hover(uri, line, character)
        assert found is not None and isinstance(found.contents, t.MarkupContent)
        return found.contents.value

    def complete(self, uri: str, line: int, character: int) -> list[t.CompletionItem]:
        params = t.CompletionParams(t.TextDocumentIdentifier(uri), t.Position(line, character))
        found = self.run(self.client.text_document_completion_async(params))
        return list(found.items) if found is not None else []

    def actions(
        self, uri: str, line: int, only: list[str] | None = None, diagnostics: list[t.Diagnostic] | None = None
    ) -> list[t.CodeAction]:
        place = t.Range(t.Position(line, 0), t.Position(line, 0))
        context = t.CodeActionContext(diagnostics or [], only=only)  # type: ignore[arg-type]
        params = t.CodeActionParams(t.TextDocumentIdentifier(uri), place, context)
        return list(self.run(self.client.text_document_code_action_async(params)) or [])

    def lenses(self, uri: str) -> list[t.CodeLens]:
        return list(self.run(self.client.text_document_code_lens_async(t.CodeLensParams(t.TextDocumentIdentifier(uri)))) or [])

    def command(self, command: str, *arguments: Any) -> Any:
        return self.run(self.client.workspace_execute_command_async(t.ExecuteCommandParams(command, list(arguments))))

    def stop(self) -> int | None:
        """End the server as an editor does; gives its exit code."""
        self.run(self.client.shutdown_async(None))
        self.loop.call_soon_threadsafe(self.client.exit, None)
        process = self.client._server
        code: int | None = self.run(process.wait(), 30) if process is not None else None
        self.run(self.client.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        return code


def project(folder: Path, upstream: Path, more: str = "") -> Path:
    """A project with settings for eight H100."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "mblint.toml").write_text(f'upstream = "{upstream}"\ngpu = "h100"\nworld-size = 8\n{more}')
    return folder


def applied(text: str, edits: list[t.TextEdit]) -> str:
    """The text after edits in UTF-16 positions, made by hand and not by the code under test."""
    data = text.encode("utf-16-le")
    lines = data.split("\n".encode("utf-16-le"))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 2)
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        begin = starts[edit.range.start.line] + 2 * edit.range.start.character
        end = starts[edit.range.end.line] + 2 * edit.range.end.character
        data = data[:begin] + edit.new_text.encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def line_of(text: str, part: str) -> int:
    """The line, from 0, that holds a part."""
    return text[: text.index(part)].count("\n")
