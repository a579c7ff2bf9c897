"""Ways out for a launch that does not fit: which settings to change, what each saves and what each costs.

`remedies` lists single changes in the tuning guide's order, `candidates` combines them, `search` estimates
the combinations and lets the whole evaluation judge those that look right.
"""
