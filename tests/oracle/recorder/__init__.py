"""Records what the real megatron-bridge does, for the tests of the static evaluator to be held against.

This package is the one place of the project that really imports upstream. Nothing in `mblint` imports
it, and it is never part of the wheel: see the README beside it.
"""
