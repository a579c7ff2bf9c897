"""megatron-bridge's own memory estimator, run by the interpreter in which it is installed: the one place
where mblint lets anything of upstream run, and only when the user asks for it.

`run` is the side of mblint, `child` the script that the other interpreter executes; data go in and come out
as JSON.
"""
