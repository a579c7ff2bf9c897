"""Output formats, one file each; a report never computes."""
