"""Annotations of dataclass fields as values: Field.type."""

from __future__ import annotations

import ast
from typing import Any

from mblint.evaluate.compiler import Context
from mblint.evaluate.expressions import compile_expression
from mblint.evaluate.frames import Frame
from mblint.evaluate.machine import Machine
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import Field


def annotation_value(machine: Machine, field: Field, frame: Any) -> Any:
    """What `field.type` is: its text where the module postpones annotations, else the type that it names."""
    annotation = field.annotation
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant):
        return annotation.value
    if any(
        isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and any(a.name == "annotations" for a in statement.names)
        for statement in field.module.tree.body
    ):
        return ast.unparse(annotation)
    module_frame = Frame(field.module, None, None, None)
    module_frame.vars = field.module.vars
    machine.speculation += 1
    try:
        return compile_expression(Context(machine, field.module, None, ""), annotation)(module_frame)
    except Exception as error:
        from mblint.evaluate.errors import Raised

        if not isinstance(error, Raised):
            raise
        return Unknown("an annotation that is not evaluated")
    finally:
        machine.speculation -= 1
