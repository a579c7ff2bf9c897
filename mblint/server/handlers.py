"""What the server does at each message of the client."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lsprotocol import types

from mblint.facts.memory.capacity import GIB
from mblint.read.span import Span
from mblint.server import convert, questions
from mblint.server.actions import Action
from mblint.server.app import WATCHED, Server
from mblint.server.documents import Document, Lines, Position, open_document, path_of
from mblint.server.service import Service
from mblint.server.worker import OTHERS, QUESTION

Found = TypeVar("Found")
Shown = TypeVar("Shown")

FIX_ALL = "source.fixAll.mblint"
KINDS = {"fix": "quickfix", "suppress": "quickfix", "all": FIX_ALL}


def register(server: Server) -> None:
    """Register all features."""
    _life(server)
    _documents(server)
    _questions(server)
    _commands(server)


def _life(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        folders = [folder.uri for folder in params.workspace_folders or []] or ([params.root_uri] if params.root_uri else [])
        paths = [os.path.realpath(path) for uri in folders if (path := path_of(uri)) is not None]
        if not paths and params.root_path:
            paths = [os.path.realpath(params.root_path)]
        server.service.projects.folders = paths

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = types.Registration("mblint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
            server.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        projects = server.service.projects
        gone = {os.path.realpath(path) for folder in params.event.removed if (path := path_of(folder.uri)) is not None}
        come = [os.path.realpath(path) for folder in params.event.added if (path := path_of(folder.uri)) is not None]
        projects.folders = [*(path for path in projects.folders if path not in gone), *come]
        projects.forget_roots()
        server.all_again()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.type != types.FileChangeType.Changed for change in params.changes):
            server.worker.submit(server.service.forget_missing, 1)
        server.all_again()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configuration(params: types.DidChangeConfigurationParams) -> None:
        server.all_again()

    @server.feature(types.SHUTDOWN)
    def shutdown(params: Any = None) -> None:
        server.asked_to_stop = True
        for timer in server.timers.values():
            timer.cancel()
        server.worker.close()


def _documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        folder = next(iter(server.service.projects.folders), os.getcwd())
        document = open_document(item.uri, str(item.language_id), item.version, item.text, folder)
        server.documents[item.uri] = document
        server.foreign = {uri: {u: r for u, r in rows.items() if u != item.uri} for uri, rows in server.foreign.items()}
        server.later(document, delay=0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return
        version = params.text_document.version
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                start, end = change.range.start, change.range.end
                document.edit(
                    Position(start.line, start.character), Position(end.line, end.character), change.text, version, server.encoding
                )
            else:
                document.replace(change.text, version)
                document.touched = None
        server.later(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None and document.kind == "settings":
            server.all_again()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        document = server.documents.pop(uri, None)
        timer = server.timers.pop(uri, None)
        if timer is not None:
            timer.cancel()
        server.lenses.pop(uri, None)
        for other in server.foreign.pop(uri, {}):
            server.publish_foreign(other)
        if document is not None:
            server.publish_foreign(uri)
            server.others_again(uri)


def _questions(server: Server) -> None:
    def place(document: Document, position: types.Position) -> tuple[int, int]:
        return document.lines(server.encoding).place(Position(position.line, position.character))

    async def at(
        params: types.HoverParams | types.CompletionParams,
        question: Callable[[Service, Document, int, int], Found | None],
        shown: Callable[[Found, int, Lines], Shown],
    ) -> Shown | None:
        """The answer to a question about one place, in the protocol's words."""

        def work(document: Document) -> Shown | None:
            line, column = place(document, params.position)
            found = question(server.service, document, line, column)
            return shown(found, line, document.lines(server.encoding)) if found is not None else None

        return await server.ask(params.text_document.uri, work)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        return await at(params, questions.hover_at, convert.hover)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "=", " ", '"', "'"]))
    async def completion(params: types.CompletionParams) -> types.CompletionList | None:
        return await at(params, questions.complete_at, convert.completions)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    async def lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        def work(document: Document) -> list[types.CodeLens]:
            lines = document.lines(server.encoding)
            found = questions.lenses_of(server.service, document)
            return [made for held in found for made in convert.lens(held, lines, document.uri)]

        return await server.ask(params.text_document.uri, work)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True),
    )
    async def action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or []]

        def wanted(kind: str) -> bool:
            name = KINDS[kind]
            if not only:
                return kind != "all"
            return any(name == asked or name.startswith(f"{asked}.") or not asked for asked in only)

        def work(document: Document) -> list[types.CodeAction]:
            first, _ = place(document, params.range.start)
            last, _ = place(document, params.range.end)
            rules = frozenset(str(entry.code) for entry in params.context.diagnostics if entry.source == "mblint" and entry.code)
            found = questions.actions_at(server.service, document, first, last, rules, wanted)
            made = [made_of(each, params.context.diagnostics) for each in found]
            for each in made:
                if each.data is not None:
                    each.data = {**each.data, "asked": document.uri, "generation": document.generation}
            return made if resolves() else [done for each in made if (done := with_comment(document, each)).edit is not None]

        # What the editor asks by itself at every move of the cursor comes after the findings; proofs take their time.
        automatic = params.context.trigger_kind == types.CodeActionTriggerKind.Automatic
        return await server.ask(params.text_document.uri, work, OTHERS if automatic else QUESTION)

    def made_of(action: Action, diagnostics: Sequence[types.Diagnostic]) -> types.CodeAction:
        return convert.action(action, server.lines_of, server.uri, server.version_of, diagnostics, versioned())

    def versioned() -> bool:
        """Whether the client takes edits with the version of the document that they are for."""
        workspace = server.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return bool(edits is not None and edits.document_changes)

    def resolves() -> bool:
        """Whether the client asks for an action's edit when it is chosen."""
        document = server.client_capabilities.text_document
        support = document.code_action.resolve_support if document is not None and document.code_action is not None else None
        return support is not None and "edit" in support.properties

    def with_comment(document: Document, action: types.CodeAction) -> types.CodeAction:
        """The action with the edit that writes its comment; without one where none can stand, or the text is another now."""
        data = action.data
        if action.edit is not None or not isinstance(data, dict) or data.get("generation") != document.generation:
            return action
        line, column, end_line, end_column = (int(number) for number in data["place"])
        span = Span(str(data["path"]), line, column, end_line, end_column)
        edit = questions.comment_at(server.service, document, str(data["rule"]), span, bool(data["whole"]))
        if edit is not None:
            action.edit = made_of(Action(action.title, "suppress", (edit,)), ()).edit
        return action

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        data = action.data if isinstance(action.data, dict) else {}
        done = await server.ask(str(data.get("asked", "")), lambda document: with_comment(document, action))
        return done if done is not None else action


def _commands(server: Server) -> None:
    async def said(uri: str, recipe: str, memory: bool) -> str:
        found = await server.ask(uri, lambda document: questions.summary(server.service, document, recipe))
        if found is None:
            return ""
        name = recipe.rpartition(":")[2]
        if not memory:
            return f"{name}: {found.layout}, {found.batch}"
        parts = [f"{part} {size / GIB:.1f}" for part, size in sorted(found.components.items(), key=lambda item: -item[1])]
        missing = [f"{key}: {reason}" for key, reason in found.missing.items()]
        return f"{name}: {found.memory}. " + ("GiB by part: " + ", ".join(parts) if parts else "Not known: " + "; ".join(missing))

    @server.command("mblint.layout")
    async def layout(uri: str, recipe: str) -> str:
        text = await said(uri, recipe, False)
        _say(server, text)
        return text

    @server.command("mblint.memory")
    async def memory(uri: str, recipe: str) -> str:
        text = await said(uri, recipe, True)
        _say(server, text)
        return text


def _say(server: Server, text: str) -> None:
    if text:
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, text))
