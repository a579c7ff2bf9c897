"""Setting mblint up in a repository: what is there already, and the files that are missing."""
