"""Derived values, one file a subject; a fact never reads a file and never judges."""
