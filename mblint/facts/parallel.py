"""Sizes of the parallel dimensions and of the grids that they span.

The launch has TP x PP x CP x DP ranks; experts live on a second grid, ETP x EP x PP x expert DP, over the
same ranks. Source: megatron.core.parallel_state.initialize_model_parallel,
ConfigContainer.get_data_parallel_size.
"""

from __future__ import annotations

from mblint.facts.versions import at_least
from mblint.facts.view import View, fact


@fact("parallel.tp")
def tp(view: View) -> int:
    """Tensor parallel size."""
    return view.integer("model.tensor_model_parallel_size", 1)


@fact("parallel.pp")
def pp(view: View) -> int:
    """Pipeline parallel size."""
    return view.integer("model.pipeline_model_parallel_size", 1)


@fact("parallel.cp")
def cp(view: View) -> int:
    """Context parallel size."""
    return view.integer("model.context_parallel_size", 1)


@fact("parallel.ep")
def ep(view: View) -> int:
    """Expert parallel size."""
    return view.integer("model.expert_model_parallel_size", 1)


@fact("parallel.etp")
def etp(view: View) -> int:
    """Expert tensor parallel size; where not given TP, but 1 with EP > 1 from megatron-bridge 0.6 on."""
    size = view.value("model.expert_tensor_parallel_size")
    if size is not None:
        return view.integer("model.expert_tensor_parallel_size")
    tp = view.integer("parallel.tp")
    if tp == 1 or view.integer("parallel.ep") <= 1:
        return tp
    return 1 if at_least(view, "bridge", 0, 6) else tp


@fact("parallel.world_size")
def world_size(view: View) -> int:
    """Number of GPUs that the sizes divide. Absent with dist_train, where the language model has its own."""
    if view.flag("model.dist_train.use_dist_train"):
        view.stop()
    size = view.integer("world_size")
    return size if size > 0 else view.stop()


@fact("parallel.model_parallel_size")
def model_parallel_size(view: View) -> int:
    """TP x PP x CP: GPUs that hold one copy of the model. Absent with weights sharded further (GTP)."""
    if view.integer("model.gtp_weight_remat_size", 1) != 1:
        view.stop()
    return _positive(view, "parallel.tp") * _positive(view, "parallel.pp") * _positive(view, "parallel.cp")


@fact("parallel.fits_world")
def fits_world(view: View) -> bool:
    """Whether TP x PP x CP divides the number of GPUs."""
    return view.integer("parallel.world_size") % view.integer("parallel.model_parallel_size") == 0


@fact("parallel.data_parallel_size")
def data_parallel_size(view: View) -> int:
    """GPUs / (TP x PP x CP); absent where that does not divide."""
    if not view.flag("parallel.fits_world"):
        view.stop()
    return view.integer("parallel.world_size") // view.integer("parallel.model_parallel_size")


@fact("parallel.dp_with_cp")
def dp_with_cp(view: View) -> int:
    """DP x CP: ranks that a distributed optimizer shards its state over."""
    return view.integer("parallel.data_parallel_size") * view.integer("parallel.cp")


@fact("parallel.expert_grid_size")
def expert_grid_size(view: View) -> int:
    """ETP x EP x PP: GPUs that one copy of all experts takes. Absent with weights sharded further (GTP)."""
    if view.integer("model.expert_gtp_weight_remat_size", 1) != 1:
        view.stop()
    return _positive(view, "parallel.etp") * _positive(view, "parallel.ep") * _positive(view, "parallel.pp")


@fact("parallel.expert_grid_fits")
def expert_grid_fits(view: View) -> bool:
    """Whether ETP x EP x PP divides the number of GPUs."""
    return view.integer("parallel.world_size") % view.integer("parallel.expert_grid_size") == 0


@fact("parallel.expert_data_parallel_size")
def expert_data_parallel_size(view: View) -> int:
    """GPUs / (ETP x EP x PP); absent where that does not divide."""
    if not view.flag("parallel.expert_grid_fits"):
        view.stop()
    return view.integer("parallel.world_size") // view.integer("parallel.expert_grid_size")


@fact("parallel.nodes_of_model")
def nodes_of_model(view: View) -> int:
    """NVLink domains that the TP x CP ranks of one stage span, rounded up."""
    size = view.integer("parallel.tp") * view.integer("parallel.cp")
    return -(-size // view.integer("gpu.nvlink_domain"))


@fact("parallel.eval_cp")
def eval_cp(view: View) -> int:
    """Context parallel size of evaluation: its own where it has one, else that of training."""
    return view.integer("dist.eval_context_parallel_size", view.integer("parallel.cp"))


@fact("parallel.eval_model_parallel_size")
def eval_model_parallel_size(view: View) -> int:
    """TP x PP x CP of evaluation."""
    return _positive(view, "parallel.tp") * _positive(view, "parallel.pp") * _positive(view, "parallel.eval_cp")


@fact("parallel.eval_data_parallel_size")
def eval_data_parallel_size(view: View) -> int:
    """Data parallel size of evaluation; absent where TP x PP x CP does not divide the number of GPUs."""
    if view.value("dist.eval_context_parallel_size") is None:
        return view.integer("parallel.data_parallel_size")
    copies, rest = divmod(view.integer("parallel.world_size"), view.integer("parallel.eval_model_parallel_size"))
    return copies if rest == 0 else view.stop()


def _positive(view: View, name: str) -> int:
    size = view.integer(name)
    return size if size > 0 else view.stop()
