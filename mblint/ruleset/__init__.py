"""Rule files: loading, validation, conditions in three-valued logic."""
