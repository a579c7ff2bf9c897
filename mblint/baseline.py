"""The baseline: findings that a grown repository lives with until somebody gets to them.

    {"version": 1, "findings": [
    {"keys": {...}, "launch": "pkg.module:function", "rule": "MB203"},
    null]}

One finding a line, sorted, each line complete with its comma: two branches that add different findings merge
without a conflict unless they add at the very same place. No lines or columns: reformatting, reordering,
moving and renaming keep a finding known.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mblint.findings import Finding
from mblint.fingerprint import subject

FILE_NAME = "mblint-baseline.json"
VERSION = 1


class BaselineError(Exception):
    """The file is no baseline; the message names place and remedy."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`new` findings are not in the baseline, `known` ones are; `stale` entries match nothing any more.

    `entries` is the baseline with moved launches under their new names and the stale entries left out.
    """

    new: list[Finding]
    known: list[Finding]
    stale: list[dict[str, Any]]
    entries: list[dict[str, Any]]


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, ensure_ascii=False)


def _order(entry: dict[str, Any]) -> tuple[str, str, str]:
    return str(entry.get("launch", entry.get("file", ""))), str(entry.get("rule", "")), _text(entry)


def entries_of(findings: Iterable[Finding], root: str) -> list[dict[str, Any]]:
    """One entry for each thing found, sorted, doubles once."""
    found = {_text(entry): entry for entry in (subject(finding, root) for finding in findings)}
    return sorted(found.values(), key=_order)


def dump(entries: Iterable[dict[str, Any]]) -> str:
    """The text of a baseline file."""
    unique = {_text(entry): entry for entry in entries}
    lines = [_text(entry) + "," for entry in sorted(unique.values(), key=_order)]
    return "\n".join([f'{{"version": {VERSION}, "findings": [', *lines, "null]}", ""])


def parse(text: str, path: str) -> list[dict[str, Any]]:
    """The entries of a baseline file. Raises BaselineError."""
    try:
        data = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        hint = "; a merge left its marks in it" if "<<<<<<<" in text else ""
        raise BaselineError(f"{path}:{line}: is not JSON{hint}; mend it, or write it anew with --write-baseline") from None
    except RecursionError:
        raise BaselineError(f"{path}: is nested too deeply to be a baseline") from None
    if not isinstance(data, dict) or not isinstance(data.get("findings"), list):
        raise BaselineError(f"{path}: is no mblint baseline; write one with --write-baseline")
    if data.get("version") != VERSION:
        raise BaselineError(f"{path}: has version {data.get('version')!r}, this mblint reads {VERSION}; write it anew")
    entries = [entry for entry in data["findings"] if entry is not None]
    bad = next((entry for entry in entries if not isinstance(entry, dict) or "rule" not in entry), None)
    if bad is not None:
        raise BaselineError(f"{path}: holds an entry without a rule: {json.dumps(bad)[:60]}")
    return entries


def load(path: str) -> list[dict[str, Any]]:
    """Read a baseline file. Raises BaselineError, also when it cannot be read."""
    try:
        if not os.path.isfile(path) and os.path.exists(path):
            raise BaselineError(f"{path}: cannot be read (not a regular file)")
        with open(path, encoding="utf-8") as file:
            return parse(file.read(), path)
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise BaselineError(f"{path}: is not UTF-8 text") from None


def save(path: str, entries: Iterable[dict[str, Any]]) -> None:
    """Write a baseline file whole or not at all. Raises OSError."""
    text = dump(entries)
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(".mblint-tmp", ".baseline.", folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _place(entry: dict[str, Any]) -> str:
    return str(entry.get("launch", entry.get("file", "")))


def _content(entry: dict[str, Any]) -> str:
    return _text({key: value for key, value in entry.items() if key not in {"launch", "file"}})


def _last_name(place: str) -> str:
    return place.rpartition(":")[2] if ":" in place else place.rpartition("/")[2]


def _follow_moves(
    subjects: Sequence[dict[str, Any]],
    waiting: dict[str, dict[str, Any]],
    places: Collection[str],
    known: dict[int, dict[str, Any]],
    matched: set[str],
) -> None:
    """Pair findings of launches that the baseline does not know with entries of launches that are gone."""
    before = {_place(entry) for entry in waiting.values()}
    followed: set[str] = set()
    gone = {text: entry for text, entry in sorted(waiting.items()) if text not in matched and _place(entry) not in places}
    for same_name in (True, False):
        for index, entry in enumerate(subjects):
            if index in known or _place(entry) in before:
                continue
            if _text(entry) in followed:
                known[index] = entry  # another launch of the recipe says it again
                continue
            old = next((text for text, other in gone.items() if _moved(other, entry, same_name)), None)
            if old is not None:
                known[index] = entry
                followed.add(_text(entry))
                matched.add(old)
                del gone[old]


def _moved(old: dict[str, Any], new: dict[str, Any], same_name: bool) -> bool:
    alike = _content(old) == _content(new) and ("launch" in old) == ("launch" in new)
    return alike and (not same_name or _last_name(_place(old)) == _last_name(_place(new)))


def compare(
    findings: Sequence[Finding],
    baseline: Iterable[dict[str, Any]],
    root: str = "",
    places: Collection[str] | None = None,
    whole: bool = True,
) -> Comparison:
    """Split findings into new and known.

    `places` are the launches and (relative) files that this run looked at. An entry whose launch is not
    among them was moved or renamed when a finding of a launch that the baseline does not know says the
    same; the function's name decides first. Unless the run saw the `whole` project, what became of places
    that it did not look at is not known, and their entries stay. Without `places` only exact matches count, and
    an entry is stale only if its place was looked at.
    """
    waiting = {_text(entry): entry for entry in baseline}
    subjects = [subject(finding, root) for finding in findings]
    matched = {_text(entry) for entry in subjects} & waiting.keys()
    known = {index: entry for index, entry in enumerate(subjects) if _text(entry) in matched}
    if places is not None:
        _follow_moves(subjects, waiting, places, known, matched)
    looked_at = {_place(subject_) for subject_ in subjects} if places is None else set(places)
    stale = [
        entry
        for text, entry in sorted(waiting.items())
        if text not in matched and (_place(entry) in looked_at or (whole and places is not None))
    ]
    kept = [entry for text, entry in waiting.items() if text not in matched and entry not in stale]
    return Comparison(
        [finding for index, finding in enumerate(findings) if index not in known],
        [finding for index, finding in enumerate(findings) if index in known],
        sorted(stale, key=_order),
        sorted([*kept, *known.values()], key=_order),
    )
