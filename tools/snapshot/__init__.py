"""Parts of tools/make_snapshot.py."""
