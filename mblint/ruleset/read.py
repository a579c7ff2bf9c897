"""Reads one rule file: YAML with places, then the schema; every problem with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mblint.read.span import Span
from mblint.ruleset.load import MAX_BYTES, RuleFileError
from mblint.ruleset.rule import Rule

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_rule(path: Path) -> Rule:
    """Read and validate. Raises RuleFileError."""
    from pydantic import ValidationError

    from mblint.ruleset.model import RuleModel

    data, lines = _load(path)
    try:
        RuleModel.model_validate(data)
    except ValidationError as error:
        problems = []
        for item in error.errors(include_url=False, include_context=False, include_input=False):
            where = tuple(part for part in item["loc"])
            message = item["msg"].removeprefix("Value error, ")
            label = ".".join(str(part) for part in where)
            if item["type"] == "extra_forbidden":
                message = "no such field" + _hint(str(where[-1]))
            problems.append((Span(str(path), _line(lines, where)), f"{label}: {message}" if label else message))
        raise RuleFileError(problems) from None
    return Rule(data, str(path))


def read_light(path: Path) -> dict[str, Any]:
    """Read a rule file that was validated before it was shipped. Raises RuleFileError."""
    data, _lines = _load(path)
    return data


def _load(path: Path) -> tuple[dict[str, Any], dict[tuple[Any, ...], int]]:
    def refuse(line: int, message: str) -> RuleFileError:
        return RuleFileError([(Span(str(path), line), message)])

    try:
        if path.stat().st_size > MAX_BYTES:
            raise refuse(1, f"larger than {MAX_BYTES // 1024} KiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise refuse(1, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise refuse(1, "is not UTF-8") from None
    try:
        if _has_alias(text):
            raise refuse(1, "anchors and aliases are not used in rule files")
        node = yaml.compose(text, Loader=_Loader)
        data = None if node is None else _construct(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise refuse(mark.line + 1 if mark else 1, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise refuse(1, f"not valid YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, ValueError) as error:
        raise refuse(1, f"not valid YAML: {type(error).__name__}") from None
    if not isinstance(data, dict):
        raise refuse(1, "a rule file is a mapping")
    lines: dict[tuple[Any, ...], int] = {}
    repeated = _places(node, (), lines)
    if repeated is not None:
        raise refuse(repeated[1], f"{repeated[0]} is given twice")
    return data, lines


def _has_alias(text: str) -> bool:
    if "&" not in text and "*" not in text:
        return False
    return any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_Loader))


def _construct(node: Any) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _places(node: Any, at: tuple[Any, ...], lines: dict[tuple[Any, ...], int]) -> tuple[str, int] | None:
    """Fill `lines` with the line of every part; returns a key that is given twice, if any."""
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*at, key.value)
            if place in lines:
                return key.value, key.start_mark.line + 1
            lines[place] = key.start_mark.line + 1
            repeated = _places(value, place, lines)
            if repeated:
                return repeated
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            repeated = _places(item, (*at, index), lines)
            if repeated:
                return repeated
    return None


def _line(lines: dict[tuple[Any, ...], int], where: tuple[Any, ...]) -> int:
    while where:
        if where in lines:
            return lines[where]
        where = where[:-1]
    return lines.get((), 1)


def _hint(name: str) -> str:
    from mblint.ruleset.model import CaseModel, ExampleModel, FixModel, RuleModel
    from mblint.ruleset.suggest import closest

    fields = {field for model in (RuleModel, FixModel, CaseModel, ExampleModel) for field in model.model_fields}
    near = closest(name, sorted(fields))
    return f"; did you mean {near}?" if near else ""
