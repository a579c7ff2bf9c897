"""What overrides do to a config, where a guess would be wrong. Each expectation is what upstream itself does."""

from __future__ import annotations

from typing import Any

import pytest

from mblint.evaluate.unknown import Unknown
from mblint.launch.overrides import CliOverride, OverrideResult, evaluate_overrides, write
from mblint.launch.symbols import Construct, Symbol
from mblint.launch.yaml_tree import load_layer
from mblint.read.span import Span
from tests.launch.flat_config import FlatNode

CLASS = "megatron.bridge.training.config.ConfigContainer"


def node(class_name: str, **values: Any) -> FlatNode:
    made = FlatNode(class_name)
    made.values.update(values)
    return made


def config() -> FlatNode:
    return node(
        CLASS,
        model=node(
            "m.GPTModelProvider",
            num_layers=4,
            seq_length=128,
            params_dtype=Symbol("dtype", "torch.float32"),
            activation_func=Symbol("function", "torch.nn.functional.silu"),
            init_method=Symbol("function", "torch.nn.init.xavier_uniform_"),
            attention_backend=Symbol("enum", "AttnBackend.auto"),
            recompute_modules=["core_attn"],
            note="x",
        ),
        optimizer=node("o.OptimizerConfig", lr=1e-3, betas=[0.9, 0.95]),
        peft=node("megatron.bridge.peft.lora.LoRA", dim=8, alpha=16),
        comm_overlap=None,
        env_vars={"A": "1"},
    )


def run(*cli: str, yaml: str | None = None, root: FlatNode | None = None, **kwargs: Any) -> tuple[FlatNode, OverrideResult]:
    root = root or config()
    layers = [load_layer(yaml, "o.yaml")] if yaml is not None else []
    given = [CliOverride(text, Span("launch.sh", 1 + i, 1)) for i, text in enumerate(cli)]
    result = evaluate_overrides(root, layers, given, **kwargs)
    if result.failed is None:
        write(root, result)
    return root, result


def value(root: FlatNode, key: str) -> Any:
    found: Any = root
    for name in key.split("."):
        found = found.get(name) if isinstance(found, FlatNode) else found[name]
    return found


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("optimizer.lr=3e-4", 3e-4),
        ("optimizer.lr=1", 1),
        ("optimizer.lr=.5", 0.5),
        ("optimizer.lr=abc", "abc"),
        ("model.note=None", "None"),
        ("model.note=null", None),
        ("model.note=True", True),
        ("model.note=yes", "yes"),
        ("model.note='3'", "3"),
        ("model.note=", ""),
        ("model.note=[a,1,{b:2}]", ["a", 1, {"b": 2}]),
        ("model.note=a b", "a b"),
        ("++model.seq_length=${model.num_layers}", 4),
        ("model.seq_length=${mul:${model.num_layers},2}", None),
    ],
)
def test_values_of_the_command_line(text: str, expected: Any) -> None:
    root, result = run(text)
    if "mul:" in text:  # the runners register no such resolver
        assert result.failed is not None and "mul" in result.failed.reason
        return
    assert result.failed is None
    (assignment,) = result.assignments
    assert assignment.value == expected and type(assignment.value) is type(expected)
    assert assignment.span == Span("launch.sh", 1, 1)
    assert value(root, assignment.key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lr: 3e-4", 3e-4),
        ("lr: 1_000", 1000),
        ("lr: 0x10", 16),
        ("lr: None", "None"),
        ("lr: ~", None),
        ("lr: 'on'", "on"),
        ("lr: on", True),
        ("lr: yes", True),
        ("lr: 1:30", 90),
        ("lr: .inf", float("inf")),
    ],
)
def test_values_of_a_yaml_file(text: str, expected: Any) -> None:
    root, result = run(yaml=f"optimizer:\n  {text}\n")
    assert result.failed is None
    found = value(root, "optimizer.lr")
    assert found == expected and type(found) is type(expected)
    assert result.assignments[0].span is not None and result.assignments[0].span.line == 2


# ------------------------------------------------------------------ keys


def test_an_unknown_key_of_a_file_is_skipped_and_of_the_command_line_refused() -> None:
    root, result = run(yaml="model:\n  seq_lenght: 1\n  seq_length: 2\nfoo:\n  bar: 1\n")
    assert [(s.key, s.span.line if s.span else 0, s.owner) for s in result.skipped] == [
        ("model.seq_lenght", 2, "m.GPTModelProvider"),
        ("foo", 4, CLASS),
    ]
    assert "seq_length" in result.skipped[0].known and value(root, "model.seq_length") == 2
    _, result = run("model.seq_lenght=1")
    assert result.failed is not None and "model.seq_lenght" in result.failed.reason
    assert result.failed.span == Span("launch.sh", 1, 1)


def test_added_keys_without_an_attribute_have_no_effect() -> None:
    _, result = run("+model.new_key=1", "++model.other=2")
    assert result.failed is None and [s.key for s in result.skipped] == ["model.new_key", "model.other"]


def test_plus_on_a_key_that_exists_is_refused() -> None:
    _, result = run("+model.seq_length=1")
    assert result.failed is not None and "exists already" in result.failed.reason


def test_a_deleted_key_keeps_its_value() -> None:
    root, result = run("~model.note")
    assert result.failed is not None or value(root, "model.note") == "x"


def test_a_section_that_is_null_takes_no_key_from_the_command_line() -> None:
    _, result = run("comm_overlap.tp_comm_overlap=true")
    assert result.failed is not None
    root, result = run(yaml="comm_overlap:\n  tp_comm_overlap: true\n")
    assert result.failed is None and value(root, "comm_overlap") == {"tp_comm_overlap": True}


def test_an_empty_section_wipes_the_sub_config() -> None:
    root, result = run(yaml="optimizer:\n")
    assert result.failed is None and value(root, "optimizer") is None


def test_a_property_or_method_counts_as_an_attribute() -> None:
    root = config()
    root.values["model"].extra.add("total")
    _, result = run(yaml="model:\n  total: 3\n", root=root)
    assert result.skipped == [] and result.assignments[0].key == "model.total"


# ------------------------------------------------------------------ what upstream leaves out of the tree


def test_a_callable_sub_config_cannot_be_reached_from_the_command_line() -> None:
    _, result = run("peft.dim=4")
    assert result.failed is not None and "peft" in result.failed.reason


def test_a_mapping_for_a_callable_sub_config_is_written_into_it() -> None:
    root, result = run(yaml="peft:\n  dim: 4\n  rank: 3\n")
    assert value(root, "peft.dim") == 4 and value(root, "peft.alpha") == 16
    assert [s.key for s in result.skipped] == ["peft.rank"]


def test_null_for_a_callable_sub_config_is_put_back() -> None:
    root, result = run(yaml="peft: null\n")
    assert isinstance(value(root, "peft"), FlatNode)
    assert [(s.key, s.restored) for s in result.skipped] == [("peft", True)]


def test_functions_are_restored_and_activations_and_dtypes_converted() -> None:
    root, result = run(yaml="model:\n  activation_func: gelu\n  params_dtype: torch.bfloat16\n  init_method: normal\n")
    assert value(root, "model.activation_func") == Symbol("function", "torch.nn.functional.gelu")
    assert value(root, "model.params_dtype") == Symbol("dtype", "torch.bfloat16")
    assert value(root, "model.init_method") == Symbol("function", "torch.nn.init.xavier_uniform_")
    assert [s.key for s in result.skipped] == ["model.init_method"]


def test_a_dtype_that_is_none_stays_a_text() -> None:
    root, _ = run("model.params_dtype=bananas")
    assert value(root, "model.params_dtype") == "bananas"


def test_a_target_builds_an_object() -> None:
    root, _ = run(yaml="comm_overlap:\n  _target_: a.B\n  x: 1\n")
    built = value(root, "comm_overlap")
    assert isinstance(built, Construct) and built.target == "a.B" and built.kwargs == {"x": 1}


# ------------------------------------------------------------------ containers and order


def test_lists_are_replaced_and_dicts_of_data_merged() -> None:
    root, result = run("optimizer.betas.0=0.5", yaml="model:\n  recompute_modules: [mlp]\nenv_vars:\n  B: 2\n")
    assert value(root, "model.recompute_modules") == ["mlp"]
    assert value(root, "env_vars") == {"A": "1", "B": 2}
    assert value(root, "optimizer.betas") == [0.5, 0.95]
    (dictionary,) = [a for a in result.assignments if a.key == "env_vars"]
    assert dictionary.spans["B"].line == 4


def test_the_last_override_wins_and_gives_the_place() -> None:
    root, result = run("model.seq_length=1", "model.seq_length=2", yaml="model:\n  seq_length: 3\n")
    assert value(root, "model.seq_length") == 2
    assert [(a.value, a.span) for a in result.assignments] == [(2, Span("launch.sh", 2, 1))]


def test_an_override_equal_to_the_old_value_is_still_a_write() -> None:
    _, result = run("model.seq_length=128")
    assert [a.key for a in result.assignments] == ["model.seq_length"]


# ------------------------------------------------------------------ what is not known stays unknown


def test_an_unknown_argument_makes_its_key_unknown_and_nothing_else() -> None:
    root = config()
    why = Unknown("variable SEQ is not known")
    result = evaluate_overrides(root, (), [CliOverride("model.seq_length=", None, why), CliOverride("model.note=y")])
    write(root, result)
    assert isinstance(value(root, "model.seq_length"), Unknown) and value(root, "model.note") == "y"


def test_an_environment_that_is_not_known_gives_unknown_and_a_known_one_its_value() -> None:
    text = "model:\n  note: ${oc.env:MY_NOTE,fallback}\n"
    root, result = run(yaml=text, env={"MY_NOTE": "n"})
    assert value(root, "model.note") == "n"
    root, result = run(yaml=text, env={}, env_known=True)
    assert value(root, "model.note") == "fallback"
    root, result = run(yaml="model:\n  note: ${oc.env:MY_NOTE}\n", env={}, env_known=True)
    assert result.failed is not None and "MY_NOTE" in result.failed.reason
    root, result = run(yaml="model:\n  note: ${oc.env:MY_NOTE}\n")
    assert result.failed is None and isinstance(value(root, "model.note"), Unknown)


def test_a_key_below_an_unknown_value_is_undecided() -> None:
    root = config()
    root.values["comm_overlap"] = Unknown("a branch")
    _, result = run("comm_overlap.tp_comm_overlap=true", root=root)
    assert result.failed is None
    assert result.undecided or any(isinstance(a.value, Unknown) for a in result.assignments)


def test_foreign_resolvers_are_unknown_only_where_the_launcher_registers_them() -> None:
    text = "model:\n  note: ${mystery:1}\n"
    _, result = run(yaml=text)
    assert result.failed is not None
    root, result = run(yaml=text, foreign_resolvers=True)
    assert result.failed is None and isinstance(value(root, "model.note"), Unknown)


@pytest.mark.parametrize(
    "text",
    [
        "model.note=[1",
        "=1",
        "model..x=1",
        "model.note={a",
        "model.note=a,b",
        "model.note=range(1,3)",
        "a@b=1",
    ],
)
def test_what_hydra_refuses_is_a_failure_with_its_place(text: str) -> None:
    _, result = run(text)
    assert result.failed is not None and result.failed.span == Span("launch.sh", 1, 1)
    assert "\n" not in result.failed.reason


def test_a_missing_reference_and_a_circle_are_failures() -> None:
    for text in ("${nothing.here}", "${model.note}"):
        _, result = run(yaml=f"model:\n  note: {text}\n")
        assert result.failed is not None and result.failed.span is not None
        assert "\n" not in result.failed.reason
