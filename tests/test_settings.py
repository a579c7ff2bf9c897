"""Settings: what is found, what holds, and how mistakes are told."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mblint.errors import SettingsError
from mblint.settings import Settings, gpu_type, json_schema
from mblint.settings_file import find_settings, load_settings


@pytest.fixture(autouse=True)
def _own_cache(cache: Path) -> None:
    """No test sees what another remembered."""


def _load(tmp_path: Path, text: str, name: str = "mblint.toml"):  # type: ignore[no-untyped-def]
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load_settings(start=tmp_path)


FULL = """
required-version = ">=0.0.1"
profile = "strict"
select = ["MB1", "cpu-offload-with-pipeline"]
extend-select = "MB9"
ignore = ["MB204"]
extend-rules = ["rules/"]
docs-url = "https://docs.example.org/mblint/"
exclude = ["third_party/**"]
fail-on = "error"
baseline = "mblint-baseline.json"
upstream = "0.6.2"
python = ".venv/bin/python"
world-size = 64
gpu = "NVIDIA H100 80GB HBM3"
estimate = false
cache = false
[per-file-ignores]
"tests/*" = ["MB1", "MB2"]
"legacy.py" = "MB3"
[assume]
torch = "2.9.1"
te = ""
packages = { flash-attn = "2.8", deep_ep = false }
[[launches]]
name = "pre-train"
recipe = ["pkg.recipes:*_pretrain_config"]
overrides = ["train.train_iters=10", "+model.x=1", "~peft"]
files = "conf/a.yaml"
env = { NCCL_GRAPH_REGISTER = "0" }
world-size = 128
gpu = "gb200"
[launches.set]
"model.pipeline_model_parallel_size" = 4
"model.recompute_modules" = ["core_attn", "mlp"]
"""


def test_every_key(tmp_path: Path) -> None:
    got = _load(tmp_path, FULL).settings
    assert got.profile == "strict"
    assert got.select == ("MB1", "cpu-offload-with-pipeline")
    assert got.extend_select == ("MB9",)
    assert got.docs_url == "https://docs.example.org/mblint"
    assert got.per_file_ignores == {"tests/*": ("MB1", "MB2"), "legacy.py": ("MB3",)}
    assert (got.fail_on, got.world_size, got.gpu, got.estimate) == ("error", 64, "h100", False)
    assert (got.assume.torch, got.assume.te, got.assume.packages) == (
        "2.9.1",
        "",
        {"flash-attn": "2.8", "deep_ep": False},
    )
    (launch,) = got.launches
    assert launch.recipe == ("pkg.recipes:*_pretrain_config",)
    assert launch.overrides == ("train.train_iters=10", "+model.x=1", "~peft")
    assert launch.files == ("conf/a.yaml",)
    assert launch.set == {
        "model.pipeline_model_parallel_size": 4,
        "model.recompute_modules": ["core_attn", "mlp"],
    }
    assert (launch.env, launch.world_size, launch.gpu) == ({"NCCL_GRAPH_REGISTER": "0"}, 128, "gb200")


def test_the_test_above_names_every_key() -> None:
    schema = json_schema()
    tables = [schema, *schema["$defs"].values()]
    keys = {key for table in tables for key in table["properties"]}
    assert len(keys) > 20
    assert [key for key in keys if not re.search(rf"^{re.escape(key)} = |[\[.]{re.escape(key)}\]", FULL, re.MULTILINE)] == []


def test_a_remembered_file_gives_the_same_and_needs_no_pydantic(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "mblint.toml").write_text(FULL)
    code = (
        "import sys; from mblint.settings_file import load_settings; got = load_settings();"
        "print('pydantic' in sys.modules, got.settings, got.place('launches', 0, 'env'))"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout for _ in range(2)
    )
    assert first.startswith("True ")
    assert second.startswith("False ")
    assert first.partition(" ")[2] == second.partition(" ")[2]
    line = next(number for number, text in enumerate(FULL.splitlines(), 1) if text.startswith("env = "))
    assert first.endswith(f"mblint.toml:{line}\n")
    for remembered in (cache / "settings").iterdir():
        remembered.write_text("damaged")
    third = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert third == first


def test_a_wrong_file_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    for _ in range(2):
        with pytest.raises(SettingsError):
            _load(tmp_path, "selct = []")
    assert not (cache / "settings").exists()


def test_an_unwritable_cache_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MBLINT_CACHE_DIR", str(tmp_path / "file"))
    assert _load(tmp_path, 'gpu = "h200"').settings.gpu == "h200"


def test_nothing_is_the_defaults(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").mkdir()
    loaded = load_settings(start=tmp_path / "a")
    assert (loaded.settings, loaded.path, loaded.root) == (Settings(), None, tmp_path)


def test_the_nearest_file_wins_and_the_search_ends_at_the_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    (repository / ".git").mkdir()
    (tmp_path / "mblint.toml").write_text('gpu = "a100"')
    assert find_settings(deep) == (None, repository)
    (repository / "pyproject.toml").write_text("[tool.mblint]\ngpu = 'h100'\n")
    assert find_settings(deep) == (repository / "pyproject.toml", repository)
    (repository / "a" / "pyproject.toml").write_text("[project]\nname = 'mblint-recipes'\n")  # not ours
    assert find_settings(deep)[0] == repository / "pyproject.toml"
    (repository / "mblint.toml").write_text("")
    assert find_settings(deep)[0] == repository / "mblint.toml"
    (repository / "a" / "b" / "pyproject.toml").write_text("[tool.mblint]\n")
    assert find_settings(deep) == (deep / "pyproject.toml", deep)


def test_isolated_and_named_files(tmp_path: Path) -> None:
    (tmp_path / "mblint.toml").write_text('gpu = "h100"')
    other = tmp_path / "ci" / "other.toml"
    other.parent.mkdir()
    other.write_text('gpu = "b200"')
    assert load_settings(start=tmp_path, isolated=True).settings.gpu is None
    loaded = load_settings(other, tmp_path)
    assert (loaded.settings.gpu, loaded.root) == ("b200", other.parent)
    with pytest.raises(SettingsError, match=r"nope.toml: there is no such settings file"):
        load_settings(tmp_path / "nope.toml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct = []", "1: unknown key `selct`; did you mean `select`?"),
        ("\nfail_on = 'error'", "2: unknown key `fail_on`; did you mean `fail-on`?"),
        ("zzz = 1", "1: unknown key `zzz`; keys are required-version, profile,"),
        ("fail-on = 'eror'", "1: `fail-on` is 'eror', must be 'error', 'warning', 'advice' or 'never'; did you mean 'error'?"),
        ("select = 3", "1: `select` is 3, must be an array"),
        ("select = ['a',\n 3]", '2: `select[1]` is 3, must be a string, such as "text"'),
        ("estimate = 'yes'", "1: `estimate` is 'yes', must be true or false"),
        ("world-size = 0", "1: `world-size`: must be at least 1, not 0"),
        ("world-size = 8.0", "1: `world-size` is 8.0, must be a whole number"),
        ("world-size = true", "1: `world-size` is True, must be a whole number"),
        ("gpu = 'h10'", "1: `gpu`: 'h10' is not a known GPU type; did you mean 'h100'?"),
        ("gpu = 'fast one'", "1: `gpu`: 'fast one' is not a GPU type; for example h100, gb200"),
        ("assume = 3", "1: `assume` is 3, must be a table"),
        ("[assume]\ntorch = 2.9", '2: `assume.torch` is 2.9, must be a string, such as "text"'),
        ("[assume]\npakages = {}", "2: unknown key `assume.pakages`; did you mean `packages`?"),
        ("[per-file-ignores]\n'a' = [1]", "2: `per-file-ignores.a[0]` is 1, must be a string"),
        ("[[launches]]\nname = 'a'", "1: `launches[0]` has no `recipe`"),
        ("[[launches]]\nrecipe='a'\n[[launches]]\nrecipe='b'\nwold-size=3", "5: unknown key `launches[1].wold-size`; did you mean `world-size`?"),
        ("[[launches]]\nrecipe='a'\noverrides = ['x']", "3: `launches[0].overrides[0]`: 'x' is not an override; for example"),
        ("[[launches]]\nrecipe='a'\nenv = {A = 1}", '3: `launches[0].env.A` is 1, must be a string, such as "text"'),
        ("required-version = 'new'", "1: `required-version`: 'new' is not a version or a range"),
        ("required-version = '>99'", "1: this is mblint "),
        ("a = ", "1: not valid TOML: Invalid value"),
        ("a = 1\na = 2", "2: not valid TOML: Cannot overwrite a value"),
        ("a = '''", "1: not valid TOML: "),
    ],
)  # fmt: skip
def test_a_mistake_names_its_place_and_the_remedy(tmp_path: Path, monkeypatch, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, text)
    assert str(caught.value).startswith(f"mblint.toml:{said}"), str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_mistakes_are_told_at_once_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as caught:
        _load(
            tmp_path,
            "[project]\nname='x'\n[tool.mblint]\nb = 1\nselect = 2\n[tool.mblint.assume]\nc = 3",
            "pyproject.toml",
        )
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"pyproject.toml:{n}" for n in (4, 5, 7)]


def test_mblint_toml_may_carry_the_same_header(tmp_path: Path) -> None:
    assert _load(tmp_path, "[tool.mblint]\ngpu = 'h100'").settings.gpu == "h100"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"gpu = '\xff'", "not UTF-8"),
        (b"a = " + b"[" * 20_000, "mblint.toml"),
        (b"x" * 1_000_001, "larger than 1 MB"),
    ],
)
def test_hostile_files(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "mblint.toml").write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        load_settings(start=tmp_path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "mblint.toml").write_bytes(b"\xef\xbb\xbfgpu = 'h100'\r\nfail-on = 'error'\r\n")
    loaded = load_settings(start=tmp_path)
    assert (loaded.settings.gpu, loaded.settings.fail_on) == ("h100", "error")
    assert loaded.place("fail-on").endswith("mblint.toml:2")


def test_the_place_of_a_key_is_its_nearest_known_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = _load(tmp_path, "gpu = 'h100'\nselect = [\n'MB1',\n'MB999']\n")
    assert loaded.place("select", 1) == "mblint.toml:4"
    assert loaded.place("select", 7) == "mblint.toml:2"
    assert loaded.place("nothing") == "mblint.toml:1"
    assert load_settings(isolated=True).place("select") == "settings"


@pytest.mark.parametrize(
    ("given", "name"),
    [("h100", "h100"), ("H100", "h100"), ("NVIDIA H100 80GB HBM3", "h100"), ("A100-SXM4-40GB", "a100"), ("GB-200", "gb200"),
     ("h20", "h20"), ("MI300X", "mi300x"), ("x9000", "x9000")],
)  # fmt: skip
def test_gpu_types(given: str, name: str) -> None:
    assert gpu_type(given) == name


@pytest.mark.parametrize("given", ["h1000", "hh100", "", "100", "the big one", "b20"])
def test_gpu_types_that_are_slips(given: str) -> None:
    with pytest.raises(ValueError, match="GPU type"):
        gpu_type(given)


def test_the_schema_agrees_with_the_reader(tmp_path: Path) -> None:
    """Every key that the schema names is read, and no other; a schema that drifts misleads the editor."""
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert {"type": "string"} in schema["properties"]["select"]["anyOf"]
    for key in schema["properties"]:
        try:
            _load(tmp_path, f"{key} = 12345678901")
        except SettingsError as error:
            assert "unknown key" not in str(error), key
    assert all("description" in value for value in schema["properties"].values())


_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*json_schema()["properties"], "x", "Select"]), _values, max_size=4))
@hypothesis_settings(max_examples=150, deadline=None)
def test_no_data_crashes_the_reader(data: dict[str, object]) -> None:
    from mblint.settings_file import _validated

    try:
        _validated(data, "mblint.toml", {})
    except SettingsError as error:
        assert all(line.startswith("mblint.toml:1: ") for line in str(error).splitlines())


@pytest.mark.parametrize(
    "text", ["docs.example.org", "ftp://x.org", "https://x.org/a b", "https://x.org/?q=1", "javascript:alert(1)", "https://x/\\u001b]8"]
)
def test_an_address_that_is_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not the address of a site"):
        _load(tmp_path, f'docs-url = "{text}"')
