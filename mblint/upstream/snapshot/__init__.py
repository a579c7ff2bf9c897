"""What mblint knows of a release of megatron-bridge by itself, when no source of it is at hand.

The data are made by tools/make_snapshot.py, which evaluates the source of the release and writes down what
came out. One file a release, `data/<release>/snapshot.jsonl.gz`: a line of JSON a part, each compressed by
itself, so that a recipe costs only the parts that it needs. The first line says what is where:

    release, core    the pair of versions
    parts            [[name of a part, its length in the file], ...]; "reads" comes first

A part holds the modules whose name it starts (`megatron.bridge.recipes.llama`):

    modules    name -> what its global names stand for
        p  it is a package      g  it has a __getattr__     s  sources of its `import *`
        f  functions of which only the name is known        x  other objects of that kind
        v  name -> constant                                 m  name -> imported module
        i  source -> imported names, or [name, name here]
    classes    "module:Class" -> see classes.py
    functions  "module:name"  -> see functions.py
    shared     values that several places use

The part "providers" has the model provider that AutoBridge makes of each known Hugging Face id, and the values that
these share. Values are told in values.py. The part "reads" is the list of all attributes that anything in the release
reads.
"""

from __future__ import annotations

from mblint.upstream.snapshot.modules import Snapshot, SnapshotModule, has_source

__all__ = ["Snapshot", "SnapshotModule", "has_source"]
