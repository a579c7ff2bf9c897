"""What makes two findings the same: across a change of the file, across a move, across runs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from mblint.findings import Finding
from mblint.shown import relative

Identity = tuple[str, str, str, str, str]


def plain(value: Any) -> Any:
    """A value as JSON can hold it, the same for equal values: sets sorted, other objects by their text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return repr(value)


def identity(finding: Finding) -> Identity:
    """Who a finding is while its file is being fixed: rule, launch, condition and the keys it is about,
    without values and places, which the fix of another finding may change. A finding without keys is
    known by its message.
    """
    path = finding.span.path if finding.span is not None and finding.launch is None else ""
    about = ",".join(sorted(finding.keys)) or finding.message
    return finding.rule, finding.launch or "", finding.condition or "", path, about


def subject(finding: Finding, root: str = "") -> dict[str, Any]:
    """What a finding is about, without lines and columns: rule, launch (or file), condition, keys with
    values.

    Formatting, moving and reordering code do not change it; another value does. Without keys the message
    stands in.
    """
    entry: dict[str, Any] = {"rule": finding.rule}
    if finding.launch is not None:
        entry["launch"] = finding.launch
    elif finding.span is not None:
        entry["file"] = relative(finding.span.path, root)
    if finding.condition:
        entry["condition"] = finding.condition
    if finding.keys:
        entry["keys"] = plain(finding.keys)
    else:
        entry["message"] = finding.message
    return entry


def fingerprint(finding: Finding, root: str = "") -> str:
    """A stable name of 32 hexadecimal digits for `subject`."""
    text = json.dumps(subject(finding, root), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
