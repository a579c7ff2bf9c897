"""Recipes under another name, and what a changed file reaches."""

from __future__ import annotations

import ast
from pathlib import Path

from mblint.launch.session import Session
from mblint.review.match import Body, body_of, renamed
from mblint.review.reach import Reach
from mblint.upstream.locate import locate
from tests.helpers_upstream import write_package


def _body(path: str, *lines: str) -> Body:
    return Body(path, lines)


SAME = ("cfg = shipped()", "cfg.model.tp = 2", "cfg.train.x = 3", "return cfg")
OTHER = ("base = qwen()", "base.model.pp = 8", "return base")


def test_layout_docstring_and_comments_do_not_count() -> None:
    one = ast.parse('def f():\n    "doc"\n    x = (1 +\n        2)  # why\n    return x\n').body[0]
    other = ast.parse("def g():\n    x = 1 + 2\n    return x\n").body[0]
    assert body_of("a", one).lines == body_of("a", other).lines


def test_a_renamed_recipe_is_found_by_its_body() -> None:
    new = {"m:b": _body("m.py", *SAME)}
    assert renamed(new, {"m:a": _body("m.py", *SAME), "m:c": _body("m.py", *OTHER)}, {}) == {"m:b": "m:a"}


def test_another_name_in_another_file_has_to_be_the_same_to_the_letter() -> None:
    assert renamed({"n:b": _body("n.py", *SAME)}, {"m:a": _body("m.py", *SAME)}, {}) == {"n:b": "m:a"}
    assert renamed({"n:b": _body("n.py", *SAME[:3])}, {"m:a": _body("m.py", *SAME)}, {}) == {}


def test_another_recipe_in_its_place_is_no_rename() -> None:
    assert renamed({"m:b": _body("m.py", *SAME)}, {"m:a": _body("m.py", *OTHER)}, {}) == {}


def test_a_moved_file_keeps_its_recipes_whatever_became_of_them() -> None:
    new = {"n:a": _body("n.py", *SAME)}
    assert renamed(new, {"m:a": _body("m.py", *OTHER)}, {"n.py": "m.py"}) == {"n:a": "m:a"}


def test_each_recipe_of_the_base_becomes_one_at_most() -> None:
    new = {"m:b": _body("m.py", *SAME), "m:c": _body("m.py", *SAME)}
    assert len(renamed(new, {"m:a": _body("m.py", *SAME)}, {})) == 1


def _project(root: Path) -> Session:
    files = {
        "pkg/__init__.py": "",
        "pkg/deep.py": "X = 1\n",
        "pkg/helper.py": "from . import deep\n",
        "pkg/recipe.py": "from pkg.helper import f\nLIST = 'conf/a.yaml'\n",
        "pkg/alone.py": "import torch\nfrom megatron.bridge import x\n",
        "star.py": "from pkg.recipe import *\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    upstream = write_package(root.parent / f"{root.name}-upstream", "bridge", "0.6.2")
    return Session(locate(str(upstream)), [root])


def test_a_change_reaches_through_imports(tmp_path: Path) -> None:
    session = _project(tmp_path)
    reach = Reach(session, [str(tmp_path / "pkg/deep.py")])
    told = {name: reach.touches(str(tmp_path / name)) for name in ("pkg/recipe.py", "pkg/alone.py", "star.py", "pkg/deep.py")}
    assert told == {"pkg/recipe.py": True, "pkg/alone.py": False, "star.py": True, "pkg/deep.py": True}


def test_a_deleted_module_and_a_package_reach_too(tmp_path: Path) -> None:
    session = _project(tmp_path)
    (tmp_path / "pkg/helper.py").unlink()
    assert Reach(session, [str(tmp_path / "pkg/helper.py")]).touches(str(tmp_path / "pkg/recipe.py"))
    assert Reach(session, [str(tmp_path / "pkg/__init__.py")]).touches(str(tmp_path / "pkg/recipe.py"))
    assert not Reach(session, [str(tmp_path / "README.md")]).touches(str(tmp_path / "pkg/recipe.py"))


def test_a_data_file_reaches_who_names_it(tmp_path: Path) -> None:
    session = _project(tmp_path)
    assert Reach(session, [str(tmp_path / "conf/a.yaml")]).touches(str(tmp_path / "star.py"))
    assert not Reach(session, [str(tmp_path / "conf/b.yaml")]).touches(str(tmp_path / "star.py"))
