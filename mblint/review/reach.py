"""Which recipes a changed file can reach: through imports, however far, and through files that they name."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from mblint.launch.import_graph import ImportGraph
from mblint.launch.session import Session


class Reach:
    """What a change reaches. Files are absolute real paths."""

    def __init__(self, session: Session, changed: Collection[str]) -> None:
        """`changed` are the files that the change touched, those that are gone included."""
        self.graph = ImportGraph(session)
        self.changed = {os.path.realpath(path) for path in changed}
        self.changed_names = {name for path in self.changed for name in _names_of(path, self.graph.roots)}
        self.data_names = {os.path.basename(path) for path in self.changed if not path.endswith(".py")}
        self._hit: dict[str, bool] = {}

    def touches(self, path: str) -> bool:
        """Whether the file, one that it imports, or a data file that one of these names, was changed."""
        start = os.path.realpath(path)
        if start not in self._hit:
            self._hit[start] = self._search(start)
        return self._hit[start]

    def _search(self, start: str) -> bool:
        seen = {start}
        pending = [start]
        while pending:
            current = pending.pop()
            if current in self.changed or self._hit.get(current):
                return True
            imports = self.graph.of(current)
            if any(name in imports.text for name in self.data_names) or any(map(self._is_changed, imports.names)):
                return True
            pending += imports.files - seen
            seen |= imports.files
        return False

    def _is_changed(self, name: str) -> bool:
        """Whether the module of a dotted name, or a package above it, was changed, or is gone."""
        parts = name.split(".")
        return any(".".join(parts[:cut]) in self.changed_names for cut in range(1, len(parts) + 1))


def _names_of(path: str, roots: Collection[str]) -> Iterator[str]:
    """The dotted names by which a Python file is imported."""
    if not path.endswith(".py"):
        return
    for root in roots:
        top = os.path.realpath(root) + os.sep
        if path.startswith(top):
            yield path[len(top) :].removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, ".")
