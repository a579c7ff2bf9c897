"""How much GPU memory a launch needs, from its resolved configuration alone: pure functions, no import of
upstream.

`estimate.estimate` is mblint's own estimate, per pipeline stage; `upstream_formula.upstream_estimate` gives
the numbers of megatron-bridge's own estimator; `capacity` says what a GPU type holds and whether an
estimate fits. All sizes are bytes unless a name says otherwise (1 GiB = 2**30 bytes).
"""

from mblint.facts.memory import facts, smaller

__all__ = ["facts", "smaller"]
