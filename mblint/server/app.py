"""Speaks the protocol: documents come in, work goes to the worker's thread, answers go out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from mblint import __version__
from mblint.errors import UserError
from mblint.read.span import Span
from mblint.server import convert, questions
from mblint.server.documents import Document, Encoding, Lines, uri_of
from mblint.server.judging import Round, Stopped
from mblint.server.project import Options
from mblint.server.service import Answer, Service
from mblint.server.settings_buffer import settings_problems
from mblint.server.warm import Stamp, stamp
from mblint.server.worker import EDITED, OTHERS, QUESTION, Worker

T = TypeVar("T")

DEBOUNCE = 0.05
"""Seconds of rest after a change before it is judged."""
WATCHED = ("**/*.py", "**/*.{yaml,yml,yaml-template,tpl}", "**/*.{sh,bash,sbatch,slurm,sub}", "**/{pyproject,mblint,.mblint}.toml")

log = logging.getLogger(__name__)


class Server(LanguageServer):
    """The server with its documents, its worker, and what it has shown where."""

    def __init__(self, options: Options) -> None:
        super().__init__("mblint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Incremental)
        self.service = Service(options)
        self.worker = Worker()
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.foreign: dict[str, dict[str, list[types.Diagnostic]]] = {}
        """URI of a document -> what was found for it in files that are not open, by their URI."""
        self.lenses: dict[str, list[Any]] = {}
        self.told: set[str] = set()
        self.asked_to_stop = False
        self._disk: dict[str, tuple[Stamp, Lines | None]] = {}

    # --- documents -------------------------------------------------------------------------------------------------

    @property
    def encoding(self) -> Encoding:
        """What the client's columns count."""
        chosen = self.server_capabilities.position_encoding
        name = str(getattr(chosen, "value", chosen) or "utf-16")
        return "utf-8" if name == "utf-8" else "utf-32" if name == "utf-32" else "utf-16"

    @property
    def documents(self) -> dict[str, Document]:
        return self.service.documents

    def lines_of(self, path: str) -> Lines | None:
        """The text of a file by lines: that of an open document, else what is on disk."""
        for document in list(self.documents.values()):
            if document.path == path:
                return document.lines(self.encoding)
        mark = stamp(path)
        held = self._disk.get(path)
        if held is None or held[0] != mark:
            text = questions.disk_text(path)
            held = self._disk[path] = (mark, Lines(text, self.encoding) if text is not None else None)
        return held[1]

    def uri(self, path: str) -> str:
        """The URI that the client uses for a path."""
        for document in list(self.documents.values()):
            if document.path == path:
                return document.uri
        return uri_of(path)

    def version_of(self, path: str) -> int | None:
        for document in list(self.documents.values()):
            if document.path == path:
                return document.version
        return None

    # --- diagnostics ---------------------------------------------------------------------------------------------

    def later(self, document: Document, delay: float = DEBOUNCE, level: int = EDITED) -> None:
        """Judge a document after a moment of rest."""
        if document.path is None:
            return
        timer = self.timers.pop(document.uri, None)
        if timer is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self.timers[document.uri] = loop.call_later(delay, self.judge, document.uri, level)

    def judge(self, uri: str, level: int = EDITED) -> None:
        """Judge a document now, and show what comes out."""
        self.timers.pop(uri, None)
        document = self.documents.get(uri)
        if document is None or document.path is None:
            return
        if document.kind == "settings":
            self.show_settings(document)
            return
        if document.kind == "other":
            return
        loop = asyncio.get_running_loop()
        generation = document.generation

        def stop() -> bool:
            return document.generation != generation or self.worker.waits(level - 1) or uri not in self.documents

        def show(answer: Answer) -> None:
            rows = self.rows(answer, document)
            loop.call_soon_threadsafe(self.show, document, generation, rows, answer)

        def work() -> bool:
            if document.generation != generation or uri not in self.documents:
                return True
            try:
                show(self.service.answer(document, Round(document.touched, stop), show))
                if level <= EDITED:
                    reread, self.service.reread = frozenset(self.service.reread), set()
                    loop.call_soon_threadsafe(self.others_again, uri, reread)
            except Stopped:
                return document.generation != generation
            except Exception as error:  # a fault of ours ends this answer, not the server
                loop.call_soon_threadsafe(self.crashed, error)
            return True

        def done(future: Any) -> None:
            if not future.cancelled() and future.exception() is None and not future.result():
                loop.call_soon_threadsafe(self.judge, uri, level)

        self.worker.submit(work, level, key=uri).add_done_callback(done)

    def rows(self, answer: Answer, document: Document) -> dict[str, list[types.Diagnostic]]:
        """Diagnostics by the URI that they belong to."""
        rows: dict[str, list[types.Diagnostic]] = {document.uri: []}
        if answer.problem:
            rows[document.uri].append(problem_of(answer.problem))
            return rows
        open_paths = {other.path for other in list(self.documents.values()) if other.path is not None}
        for group in answer.groups:
            span = group.finding.span
            at = answer.place(group.finding, document.kind == "launch")
            if at is None and span is not None and self.service.is_own(answer.path, span.path):
                if span.path not in open_paths:
                    rows.setdefault(self.uri(span.path), []).append(convert.diagnostic(group, span.path, span, self.lines_of, self.uri))
                continue
            at = at or Span(answer.path, answer.heads.get(group.finding.launch or "", 1))
            rows[document.uri].append(convert.diagnostic(group, answer.path, at, self.lines_of, self.uri))
        return rows

    def show(self, document: Document, generation: int, rows: dict[str, list[types.Diagnostic]], answer: Answer) -> None:
        """Send diagnostics, unless the text they are about is gone."""
        if document.generation != generation or self.documents.get(document.uri) is not document:
            return
        if answer.problem:
            self.tell(answer.problem)
        own = rows.pop(document.uri)
        self.publish(document.uri, own, document.version)
        before = self.foreign.get(document.uri, {})
        self.foreign[document.uri] = rows
        for uri in {*before, *rows}:
            self.publish_foreign(uri)
        seen = [(summary.line, summary.layout, summary.memory) for summary in answer.lenses]
        if not answer.partial and self.lenses.get(document.uri) != seen:
            self.lenses[document.uri] = seen
            self.refresh_lenses()

    def publish_foreign(self, uri: str) -> None:
        """Send what all open documents say of a file that is not open itself."""
        found: list[types.Diagnostic] = []
        for rows in self.foreign.values():
            for entry in rows.get(uri, ()):
                if not any(entry.range == held.range and entry.message == held.message for held in found):
                    found.append(entry)
        if uri not in self.documents:
            self.publish(uri, found, None)

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    def refresh_lenses(self) -> None:
        """Ask the client to fetch lenses again, where it can."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def show_settings(self, document: Document) -> None:
        """Mistakes in a settings file that is being edited."""
        assert document.path is not None
        found = [problem_of(text, line) for line, text in settings_problems(document.text, document.path)]
        self.publish(document.uri, found, document.version)

    def all_again(self) -> None:
        """Settings, rules or files changed: judge every open document."""
        for document in list(self.documents.values()):
            self.later(document, level=OTHERS)

    def others_again(self, uri: str, reread: frozenset[str] | None = None) -> None:
        """A buffer changed: judge the other open documents that read it, of which `reread` tells the recipe files (None: all)."""
        for document in list(self.documents.values()):
            if document.uri == uri or document.kind not in ("python", "launch"):
                continue
            if reread is None or document.path in reread or document.kind == "launch":
                self.later(document, delay=4 * DEBOUNCE, level=OTHERS)

    # --- questions -----------------------------------------------------------------------------------------------

    async def ask(self, uri: str, work: Callable[[Document], T], level: int = QUESTION) -> T | None:
        """An answer about a document from the worker's thread; None where there is none to be had."""
        document = self.documents.get(uri)
        if document is None or document.path is None or document.kind not in ("python", "launch"):
            return None
        held = document

        def ask() -> T | None:
            try:
                return work(held)
            except UserError:
                return None  # shown as a diagnostic already

        try:
            return await asyncio.wrap_future(self.worker.submit(ask, level))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.crashed(error)
            return None

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What the client sent cannot be used, or a handler failed: for the log, not for a window in front of the text."""
        with contextlib.suppress(Exception):
            self.window_log_message(types.LogMessageParams(types.MessageType.Warning, f"mblint: {type(error).__name__}: {error}"))

    def crashed(self, error: BaseException) -> None:
        """A fault of mblint's own: noted in the client's log with the report's place, once for each text."""
        from mblint.crash import one_line, write_report

        text = one_line(error)
        if text in self.told:
            return
        self.told.add(text)
        report = write_report(error)
        where = f"; the report is in {report}" if report is not None else ""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"mblint failed: {text}{where}"))

    def tell(self, text: str) -> None:
        """Say something once."""
        if text not in self.told:
            self.told.add(text)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"mblint: {text}"))


def problem_of(text: str, line: int = 1) -> types.Diagnostic:
    """Why nothing is judged, as a diagnostic."""
    place = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 1))
    return types.Diagnostic(place, text, severity=types.DiagnosticSeverity.Error, source="mblint")


def serve(options: Options) -> None:
    """Talk over standard input and output until the client ends it."""
    output = sys.stdout.buffer
    sys.stdout = sys.stderr  # what anything prints must not end up between messages
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = make(options)
    server.start_io(sys.stdin.buffer, output)
    server.worker.close()
    # Taking down all that was evaluated, object by object, would take seconds; nothing is left to be written.
    sys.stderr.flush()
    os._exit(0 if server.asked_to_stop else 1)


def make(options: Options) -> Server:
    """A server with all that it can do."""
    from mblint.server.handlers import register

    server = Server(options)
    register(server)
    return server
