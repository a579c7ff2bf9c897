"""Reviewing a change: the same launches at two revisions, and what became worse."""
