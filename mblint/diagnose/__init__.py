"""From the text of a failed run to its cause: `log` reads it, `events` finds what happened in it, `causes` says why.

`upstream_check` finds the check in upstream's source that an exception came from.
"""
