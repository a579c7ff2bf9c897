"""Results of earlier runs on disk: what a file's recipes were found to be, for as long as nothing that it read has changed.

The folder is `results` in the user's cache folder. An entry is found by the tool, the release that is judged against, the
settings and the file; it holds the state of every file that its evaluation could read, and is not used when one differs.
A damaged entry is as good as none, and a folder that cannot be written leaves the run without a memory.
"""
