"""Completion scripts for shells, made from the parsers of the commands themselves."""
