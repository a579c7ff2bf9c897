"""What explanations need to know of the launch that failed."""

from __future__ import annotations

from mblint.checker import Checker
from mblint.diagnose.causes import LaunchFacts
from mblint.evaluate.unknown import ABSENT, Unknown
from mblint.facts.memory.capacity import GIB, judge
from mblint.facts.memory.estimate import estimate
from mblint.launch.resolved import ResolvedLaunch
from mblint.launch.run import Launch
from mblint.verdict import Verdict


def facts_of_launch(checker: Checker, launch: Launch) -> tuple[Verdict, LaunchFacts]:
    """The launch's verdict and facts; facts stay unknown where it cannot be evaluated."""
    facts = LaunchFacts(world_size=launch.world_size)

    def observe(resolved: ResolvedLaunch) -> None:
        _fill(facts, resolved)

    verdict = checker.judge_launch(launch, launch.id, observe)
    facts.findings = {finding.rule: finding.message for finding in verdict.findings}
    return verdict, facts


def _fill(facts: LaunchFacts, launch: ResolvedLaunch) -> None:
    def value(key: str) -> object:
        found = launch.get(key)
        return None if found is ABSENT or isinstance(found, Unknown) else found

    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        setting = launch.env.get(name)
        if isinstance(setting, str):
            facts.segments = "expandable_segments:true" in setting.lower().replace(" ", "")
    peft = launch.classes("peft")
    facts.lora = isinstance(peft, tuple) and any(name.rpartition(".")[2] in ("LoRA", "VLMLoRA", "CanonicalLoRA") for name in peft)
    facts.sequence_parallel = bool(value("model.sequence_parallel"))
    tp, pp, regather = (
        value("model.tensor_model_parallel_size"),
        value("model.pipeline_model_parallel_size"),
        launch.get("peft.sequence_parallel_input_regather"),
    )
    facts.tp = tp if isinstance(tp, int) else 1
    facts.pp = pp if isinstance(pp, int) else None
    facts.regather = regather if isinstance(regather, bool) else None
    facts.cpu_offloading = bool(value("model.cpu_offloading"))
    facts.nccl_ub = bool(value("ddp.nccl_ub"))
    found = estimate(launch)
    judged = judge(found, launch.gpu if isinstance(launch.gpu, str) else "")
    facts.verdict = judged.verdict
    if found.total_bytes is not None:
        facts.needed_gib, facts.high_gib = found.total_bytes / GIB, judged.high_bytes / GIB
    facts.capacity_gib = judged.capacity.low_gib if judged.capacity is not None else None
    facts.largest = judged.largest
