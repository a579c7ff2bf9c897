"""Whether an edited file can still be read, and what it lost."""

from __future__ import annotations

from collections import Counter

from mblint.fix.text import Refusal
from mblint.fix.tree import parse_ast
from mblint.read.comments import read_comments


def is_python(path: str) -> bool:
    return path.endswith((".py", ".pyi"))


def is_yaml(path: str) -> bool:
    return path.endswith((".yaml", ".yml"))


def is_script(path: str) -> bool:
    return path.endswith((".sh", ".bash", ".sbatch", ".slurm", ".sub"))


def parses(path: str, source: str) -> bool:
    """Whether the text is Python or YAML, by its name; other text always is."""
    if is_python(path):
        return parse_ast(source) is not None
    if is_yaml(path):
        from mblint.fix.yaml_layout import read_layout  # the YAML library, where there is such a file

        return not isinstance(read_layout(source), Refusal)
    return True


def comments(path: str, source: str) -> list[str]:
    """The comments of a text, in order."""
    return [comment.text.rstrip() for comment in read_comments(source, path)]


def lost_comments(path: str, before: str, after: str) -> list[str]:
    """The comments that the change took away."""
    missing = Counter(comments(path, before)) - Counter(comments(path, after))
    return list(missing.elements())
