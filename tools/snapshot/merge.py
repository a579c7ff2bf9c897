"""Several runs of one function, each under its own conditions, to one node.

Every run is sound where its conditions hold: what it does not know it says not to know. So where runs differ,
any of them whose conditions hold may answer; the one under the most conditions knows most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.snapshot.encode import canonical, is_unknown, unknown_node

Run = tuple[dict[str, Any], Any]
"""(conditions, node)"""

KEEP: dict[str, Any] = {"k": 1}
MOST_CHOICES = 96


def merge(runs: list[Run], default: Callable[[str, str], Any]) -> Any:
    """One node for all runs. `default(class, attribute)`: the node of a field's default, KEEP without one."""
    first = runs[0][1]
    if all(canonical(node) == canonical(first) for _, node in runs[1:]):
        return first
    always = [node for conditions, node in runs if not conditions and not is_unknown(node)]
    known = [(conditions, node) for conditions, node in runs if not is_unknown(node)]
    if not known:
        return first
    if always:
        inside = _inside(known, default)
        if inside is not None:
            return inside
        return _choice(known) if '{"?":' in canonical(always[0]) else always[0]
    return _choice(known)


def agreed(nodes: list[Any], why: str, default: Callable[[str, str], Any]) -> Any:
    """What all nodes say, of which each holds on one of several ways that nobody can tell apart."""
    first = nodes[0]
    if all(canonical(node) == canonical(first) for node in nodes[1:]):
        return first
    if all(isinstance(node, dict) and node.get("i") == first.get("i") is not None for node in nodes):
        names = list(dict.fromkeys(name for node in nodes for name in node.get("a", ())))
        given = {name: agreed([node.get("a", {}).get(name, default(first["i"], name)) for node in nodes], why, default) for name in names}
        return {
            **first,
            "a": {name: unknown_node(why) if node == KEEP else node for name, node in given.items()},
        }
    return unknown_node(why)


def _inside(runs: list[Run], default: Callable[[str, str], Any]) -> Any:
    """Nodes of one kind that hold others: merged part by part. None where they do not fit."""
    nodes = [node for _, node in runs]
    if all(isinstance(node, dict) and "i" in node for node in nodes):
        return _instances(runs, default)
    if all(isinstance(node, list) for node in nodes) and len({len(node) for node in nodes}) == 1:
        return [merge([(c, n[index]) for c, n in runs], default) for index in range(len(nodes[0]))]
    if all(isinstance(node, dict) and "t" in node for node in nodes) and len({len(n["t"]) for n in nodes}) == 1:
        return {"t": [merge([(c, n["t"][index]) for c, n in runs], default) for index in range(len(nodes[0]["t"]))]}
    if all(isinstance(node, dict) and "m" in node for node in nodes) and len({tuple(n["m"]) for n in nodes}) == 1:
        return {"m": {key: merge([(c, n["m"][key]) for c, n in runs], default) for key in nodes[0]["m"]}}
    return None


def _instances(runs: list[Run], default: Callable[[str, str], Any]) -> Any:
    name = runs[0][1]["i"]
    if any(node["i"] != name for _, node in runs) or len({canonical(node.get("n")) for _, node in runs}) > 1:
        return None
    names = list(dict.fromkeys(attribute for _, node in runs for attribute in node.get("a", ())))
    given: dict[str, Any] = {}
    for attribute in names:
        parts = [(c, node.get("a", {})[attribute] if attribute in node.get("a", ()) else default(name, attribute)) for c, node in runs]
        given[attribute] = merge(parts, default)
    merged: dict[str, Any] = {"i": name, "a": given}
    too = list(dict.fromkeys(attribute for _, node in runs for attribute in node.get("o", ()) if attribute not in given))
    if too:
        merged["o"] = too
    if runs[0][1].get("n"):
        merged["n"] = runs[0][1]["n"]
    return merged


def _choice(runs: list[Run]) -> Any:
    """The runs as alternatives, most conditions first; one that a wider one equals is left out."""
    kept: list[Run] = []
    for conditions, node in sorted(runs, key=lambda run: (len(run[0]), canonical(run[0]))):
        if any(_covers(wider, conditions) and canonical(other) == canonical(node) for wider, other in kept):
            continue
        if any(_covers(wider, conditions) and not _holds_more(node) for wider, _ in kept):
            continue
        kept.append((conditions, node))
    kept = kept[:MOST_CHOICES]
    return {"c": [[conditions, node] for conditions, node in reversed(kept)]}


def _holds_more(node: Any) -> bool:
    return isinstance(node, (dict, list)) and ("i" in node or "t" in node or "m" in node or isinstance(node, list))


def _covers(wider: dict[str, Any], narrower: dict[str, Any]) -> bool:
    return all(name in narrower and canonical(narrower[name]) == canonical(value) for name, value in wider.items())
