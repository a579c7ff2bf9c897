"""The launch path: upstream's own checks, evaluated on a launch's values from the source that it will run with.

What is evaluated is everything before the first GPU work: the runtime update with all that it calls, then process
groups up to the first communicator, the layers that each stage builds, and the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mblint.evaluate.calls import call
from mblint.evaluate.errors import BudgetExceeded, Failure, Raised, StopEvaluation
from mblint.evaluate.machine import PHASE_LAUNCH, Machine, exception_name, exception_text
from mblint.evaluate.operators import machine_frame
from mblint.evaluate.unknown import Unknown
from mblint.evaluate.values import MISSING, ClassValue, External, FunctionValue, Instance
from mblint.launch.session import Session

UPDATE = ("megatron.bridge.training.config", "runtime_config_update")
INITIALIZE = ("megatron.bridge.training.initialize", "initialize_megatron")
LAYERS = ("megatron.core.transformer.transformer_block", "get_num_layers_to_build")
SCHEDULER = ("megatron.bridge.training.optim", "_get_scheduler")
GROUPS = "megatron.core.parallel_state"

MAX_STAGES = 4096


@dataclass
class PathOutcome:
    """What the launch path did. `undecided` names checks whose condition depends on unknown values."""

    failures: list[Failure] = field(default_factory=list)
    undecided: list[tuple[Any, str]] = field(default_factory=list)
    stopped: str | None = None
    """Why the path could not be evaluated to its end, if so."""
    no_source: bool = False
    """It was not evaluated at all, since there is no source: rules alone judge then."""
    parts: set[str] = field(default_factory=set)
    """What was evaluated after the runtime update: "initialize", "layers", "scheduler"."""


def install(session: Session) -> None:
    """Register the stand-ins of functions that only do GPU work or are slow to evaluate."""
    machine = session.machine

    def stop(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        raise StopEvaluation

    def groups(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        values = list(args) + [kwargs[name] for name in ("world_size", "parallel_size", "mask") if name in kwargs]
        size, parallel, mask = values[:3]
        if isinstance(size, int) and all(isinstance(x, int) for x in parallel) and all(isinstance(x, bool) for x in mask):
            return [list(first_group(tuple(parallel), tuple(mask)))]
        return Unknown("rank groups of unknown sizes")

    def nothing(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        return Unknown("a process group")

    def normalize(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """Weights divided by their sum (upstream does it on an array)."""
        weights = args[0] if args else kwargs.get("weights")
        if isinstance(weights, (list, tuple)) and weights and all(isinstance(w, (int, float)) for w in weights) and sum(weights):
            return m.born([w / sum(weights) for w in weights])
        return Unknown("weights that are not known")

    machine.special_functions["megatron.core.datasets.utils.normalize"] = normalize

    def mask(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """Which dimensions of an order ("tp-cp-ep-dp-pp") a group spans ("tp-pp"); asked for hundreds of groups a launch."""
        order, token = (list(args[1:]) + [kwargs[name] for name in ("order", "token") if name in kwargs])[:2]
        if not isinstance(order, str) or not isinstance(token, str):
            return Unknown("dimensions that are not known")
        dimensions = order.split("-")
        wanted = token.split("-")
        for name in wanted:
            if name not in dimensions:
                return m.implicit(ValueError, f"{name!r} is not in list", site, frame)
        return m.born([name in wanted for name in dimensions])

    machine.special_functions[f"{GROUPS}.RankGenerator.get_mask"] = mask

    def node(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """The name of the first node of Slurm's list, taken apart letter by letter: nothing of the configuration hangs on it."""
        return Unknown("the name of a node")

    machine.special_functions["megatron.bridge.utils.slurm_utils._parse_slurm_nodelist"] = node

    def group(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        return External("a process group")

    def levels(m: Machine, args: list[Any], kwargs: dict[str, Any], site: Any, frame: Any) -> Any:
        """One group a level, with and without gloo; that the sizes multiply to the ranks was asked before."""
        sizes = args[2] if len(args) > 2 else kwargs.get("hierarchical_group_sizes")
        if not isinstance(sizes, (list, tuple)):
            return Unknown("groups of levels that are not known")
        return tuple(m.born([External("a process group") for _ in sizes]) for _ in range(2))

    machine.special_functions[f"{GROUPS}.create_hierarchical_groups"] = levels
    machine.special_functions[f"{GROUPS}.create_group"] = group
    machine.special_functions["megatron.core.hyper_comm_grid.HyperCommGrid.create_pg"] = nothing
    machine.special_functions[f"{GROUPS}.generate_masked_orthogonal_rank_groups"] = groups
    machine.special_functions["megatron.bridge.training.initialize._set_random_seed"] = stop
    # The groups are made; collecting them checks nothing of the configuration.
    machine.special_functions["megatron.core.process_groups_config.ProcessGroupCollection.use_mpu_process_groups"] = stop


@lru_cache(maxsize=256)
def first_group(parallel: tuple[int, ...], mask: tuple[bool, ...]) -> tuple[int, ...]:
    """The group of rank 0: ranks that differ from it only in the masked dimensions, the first dimension varying fastest.

    `parallel` holds the size of each dimension. The other groups are this one, shifted; the process that is looked at is
    rank 0, and it makes no difference to the others that they are made.
    """
    group = [0]
    stride = 1
    for size, masked in zip(parallel, mask, strict=True):
        if masked:
            group = [base + index * stride for index in range(size) for base in group]
        stride *= size
    return tuple(sorted(group))


def run_path(session: Session, cfg: Instance) -> PathOutcome:
    """Evaluate the launch path on a config that is on the heap; its writes stay there until the caller undoes them."""
    machine = session.machine
    outcome = PathOutcome()
    update = _function(session, UPDATE)
    if update is None:
        outcome.no_source = not session.upstream.roots
        release = session.upstream.bridge or ""
        outcome.stopped = (
            f"upstream's own checks were not evaluated: no source at hand; `mblint upstream fetch {release}` brings it"
            if outcome.no_source
            else "the upstream source has no runtime update"
        )
        return outcome
    machine.failures.clear()
    machine.undecided.clear()
    before = (machine.phase, machine.go_on)
    machine.phase, machine.go_on = PHASE_LAUNCH, True
    try:
        outcome.stopped = _evaluate(machine, update, [cfg])
        if outcome.stopped is None:
            outcome.stopped = _after_update(session, cfg, outcome)
    finally:
        machine.phase, machine.go_on = before
        outcome.failures = list(machine.failures)
        outcome.undecided = [] if outcome.failures else list(machine.undecided)
        machine.failures.clear()
        machine.undecided.clear()
    return outcome


def _after_update(session: Session, cfg: Instance, outcome: PathOutcome) -> str | None:
    """Groups, layers and scheduler; each on its own, so that one that cannot be evaluated does not hide the others.

    After a failed check they are left out: values that it left in an impossible state say nothing about what comes then.
    """
    machine = session.machine
    stopped: str | None = None
    initialize = _function(session, INITIALIZE)
    if initialize is not None and not machine.failures:
        outcome.parts.add("initialize")
        stopped = session.replay.run("initialize", [cfg], lambda: _evaluate(machine, initialize, [cfg]))
    if not machine.failures:
        outcome.parts.add("layers")
        stopped = _layers(session, cfg) or stopped
    if not machine.failures:
        outcome.parts.add("scheduler")
        stopped = _scheduler(session, cfg) or stopped
    return stopped


def _evaluate(machine: Machine, function: Any, args: list[Any]) -> str | None:
    """Call; returns why it could not be evaluated to its end."""
    handlers, depth, speculation = machine.handlers, machine.depth, machine.speculation
    machine.handlers = []
    try:
        machine.begin()
        call(machine, function, args, {}, None, machine_frame(machine))
    except StopEvaluation:
        pass
    except Raised as raised:
        machine.failures.append(
            Failure(exception_name(raised.value), exception_text(raised.value), raised.site, raised.trace, (), False, machine.phase)
        )
    except (BudgetExceeded, RecursionError) as error:
        return str(error) or "nested too deeply"
    finally:
        machine.handlers, machine.depth, machine.speculation = handlers, depth, speculation
    return None


def _function(session: Session, name: tuple[str, str]) -> FunctionValue | None:
    found = session.modules.import_from(*name)
    return found if isinstance(found, FunctionValue) and session.is_shown(found.module.path) else None


def _is_stack(model: Instance) -> bool:
    """Whether the model builds its layers by stage with the common function."""
    if model.cls is None:
        return False
    names = [base.name for base in model.cls.cached_mro if isinstance(base, ClassValue)]
    return not any(part in name for name in names for part in ("Hybrid", "Mamba", "T5", "MIMO"))


def _layers(session: Session, cfg: Instance) -> str | None:
    model = cfg.attrs.get("model")
    if not isinstance(model, Instance) or not _is_stack(model):
        return None
    config = model.attrs.get("transformer", model)
    function = _function(session, LAYERS)
    if function is None or not isinstance(config, Instance):
        return None
    if config.attrs.get("pipeline_model_parallel_layout", MISSING) is not None:
        return None
    stages = config.attrs.get("pipeline_model_parallel_size")
    chunks = config.attrs.get("virtual_pipeline_model_parallel_size")
    if not isinstance(stages, int) or not 0 < stages <= MAX_STAGES:
        return None
    takes = {argument.arg for argument in function.node.args.args}
    ranks = sorted({0, 1, stages - 1} & set(range(stages)))  # the middle stages are alike
    for rank in ranks:
        for chunk in range(chunks) if isinstance(chunks, int) and 0 < chunks <= 64 else [None]:
            args: list[Any] = [config]
            if "vp_stage" in takes:
                args.append(chunk)
            if "pp_rank" not in takes:
                return None
            args.append(rank)
            stopped = _evaluate(session.machine, function, args)
            if stopped or session.machine.failures:
                return stopped
    return None


def _scheduler(session: Session, cfg: Instance) -> str | None:
    function = _function(session, SCHEDULER)
    optimizer, scheduler = cfg.attrs.get("optimizer"), cfg.attrs.get("scheduler")
    if function is None or not isinstance(optimizer, Instance) or not isinstance(scheduler, Instance):
        return None
    machine = session.machine
    stand_in = machine.new_instance(None, "the optimizer")
    # One group without values of its own: the scheduler's first step computes its learning rate and weight decay.
    stand_in.attrs["param_groups"] = machine.born([machine.born({})])
    return _evaluate(machine, function, [optimizer, scheduler, stand_in])
