"""Edits that repair a finding, and the proof that they do."""
