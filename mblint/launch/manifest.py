"""Commands inside YAML: Kubernetes manifests, Helm values, pipeline and card files with command lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from mblint.evaluate.unknown import Unknown
from mblint.launch.commands import Context, launch_of
from mblint.launch.script import INTEREST, may_launch, read_script
from mblint.launch.slurm import Allocation, gpu_of, product
from mblint.launch.spec import Given, LaunchSpec
from mblint.read import yaml as source
from mblint.read.shell import HOLE
from mblint.read.shell_run import follow_words
from mblint.read.shell_text import Places, Text

_GPU_KEYS = ("nvidia.com/gpu", "amd.com/gpu")
_PLACEHOLDER = re.compile(r"<<([A-Za-z_][\w.]*)>>")


def read_commands(
    documents: list[source.Document],
    text: str,
    path: str,
    places: Places,
    source_of: Callable[[str], str | None] | None = None,
) -> list[LaunchSpec]:
    """The launches of all commands in the documents of a YAML file."""
    reader = _Reader(text, path, places, source_of)
    for document in documents:
        reader.root = document.root
        reader.walk(document.root, [])
    return reader.found


class _Reader:
    def __init__(self, text: str, path: str, places: Places, source_of: Callable[[str], str | None] | None) -> None:
        self.text = text
        self.path = path
        self.places = places
        self.source_of = source_of
        self.base = places.add(path, text).start
        self.root: source.Node | None = None
        self.found: list[LaunchSpec] = []
        self.seen: set[int] = set()

    def walk(self, node: source.Node | None, above: list[source.Mapping]) -> None:
        if node is None or id(node) in self.seen or len(above) > 60:
            return
        self.seen.add(id(node))
        if isinstance(node, source.Scalar):
            self.scalar(node, above)
        elif isinstance(node, source.SequenceNode):
            for item in node.items:
                self.walk(item, above)
        else:
            given = [source.get(node, key) for key in ("command", "args")]
            named = source.get(node, "image") is not None or source.get(node, "env") is not None
            listed = isinstance(given[0], source.SequenceNode)
            if (listed or (named and any(given))) and self.container(node, above):
                return
            for _, value in node.pairs:
                self.walk(value, [*above, node])

    # -------------------------------------------------------------- texts

    def words(self, node: source.Scalar) -> Text:
        """A scalar's text with its places; `<<global_vars.x>>` is put in where the file defines it."""
        offsets = source.text_offsets(node, self.text)
        whole = Text(node.text, tuple(self.base + offset for offset in offsets))
        out, at = Text(), 0
        for match in _PLACEHOLDER.finditer(node.text):
            value = self.variable(match[1])
            place = whole.at[match.start()]
            if value is None:
                new = Text(
                    HOLE,
                    (place,),
                    (Unknown(f"{match.group()} is filled in by the program that reads this file"),),
                )
            else:
                new = Text(value, (place,) * len(value))
            out = out + whole.part(at, match.start()) + new
            at = match.end()
        return out + whole.part(at)

    def variable(self, name: str) -> str | None:
        keys = name.split(".")
        for start in (self.root, source.get(self.root, "pipeline")):
            found = source.get_text(start, *keys)
            if found is not None:
                return found
        return None

    def scalar(self, node: source.Scalar, above: list[source.Mapping]) -> None:
        if len(node.text) < 20 or not may_launch(node.text):
            return
        env, world, gpu = self.around(above)
        reading = read_script(self.words(node), self.path, self.places, self.source_of, env=env, world=world, gpu=gpu)
        self.found.extend(reading.launches)

    def around(self, above: list[source.Mapping]) -> tuple[dict[str, Given], Given | None, Given | None]:
        """Environment, GPU count and type that the mappings around a command give, the nearest first."""
        env: dict[str, Given] = {}
        world: Given | None = None
        gpu: Given | None = None
        for mapping in above:
            for key in ("env", "environment", "envs", "env_vars"):
                env.update(self.environment(source.get(mapping, key)))
            slurm = source.get(mapping, "slurm_config")
            nodes = self.number(source.get(slurm, "nodes"))
            per_node = self.number(source.get(slurm, "ntasks_per_node")) or self.number(source.get(slurm, "gpus_per_node"))
            if per_node is not None:
                world = product(nodes or Given(1), per_node)
            gpu = self.gpu(mapping) or gpu
        return env, world, gpu

    def environment(self, node: source.Node | None) -> dict[str, Given]:
        """`env:` as a list of name and value, a list of single pairs, or a mapping."""
        env: dict[str, Given] = {}
        pairs: list[tuple[str, source.Node]] = []
        if isinstance(node, source.Mapping):
            pairs = [(key.text, value) for key, value in node.pairs if isinstance(key, source.Scalar)]
        elif isinstance(node, source.SequenceNode):
            for item in node.items:
                name, value = source.get_text(item, "name"), source.get(item, "value")
                if name is not None:
                    env[name] = self.value(value) if value is not None else Given(Unknown(f"{name} is taken from elsewhere"))
                elif isinstance(item, source.Mapping) and len(item.pairs) == 1:
                    key, value = item.pairs[0]
                    if isinstance(key, source.Scalar) and isinstance(value, source.Scalar):
                        pairs.append((key.text, value))
        for name, value in pairs:
            if isinstance(value, source.Scalar) and re.fullmatch(r"[A-Za-z_]\w*", name):
                env[name] = self.value(value)
        return env

    def value(self, node: source.Node) -> Given:
        if not isinstance(node, source.Scalar):
            return Given(Unknown("it is no plain value"), node.span)
        if re.search(r"\$\{|\{\{|\$\(|<<", node.text):
            return Given(Unknown("it is filled in when the manifest is rendered", node.span), node.span)
        return Given(node.text, node.span)

    @staticmethod
    def number(node: source.Node | None) -> Given | None:
        if not isinstance(node, source.Scalar) or source.scalar_tag(node) == "null":
            return None
        if node.text.isdigit():
            return Given(int(node.text), node.span)
        return Given(Unknown(f"{node.text!r} is filled in when the manifest is rendered", node.span), node.span)

    @staticmethod
    def gpu(mapping: source.Mapping) -> Given | None:
        selector = source.get(mapping, "nodeSelector")
        for scalar in source.walk_scalars(selector):
            found = gpu_of(scalar.text)
            if found:
                return Given(found, scalar.span)
        return None

    # -------------------------------------------------------------- containers

    def container(self, node: source.Mapping, above: list[source.Mapping]) -> bool:
        """A container of a manifest: its command and arguments as one command line. False when it is no
        launch."""
        words: list[Text] = []
        for key in ("command", "args"):
            value = source.get(node, key)
            items = value.items if isinstance(value, source.SequenceNode) else [value] if value is not None else []
            for item in items:
                if not isinstance(item, source.Scalar):
                    return False
                words.append(self.words(item))
        if not words:
            return False
        words = [_rendered(word) for word in words]
        env, _, gpu = self.around([*above, node])
        world = self.replicas(node, above)
        run = follow_words(words, self.places, INTEREST)
        found = []
        for invocation in run.invocations:
            context = Context(
                self.path,
                self.places,
                Allocation(),
                self.source_of or (lambda name: None),
                env,
                world=world,
                gpu=gpu,
            )
            spec = launch_of(invocation, context)
            if spec is not None:
                found.append(replace(spec, span=spec.span or node.span))
        self.found.extend(found)
        return bool(found)

    def replicas(self, node: source.Mapping, above: list[source.Mapping]) -> Given | None:
        """GPUs of a job: those of one container times the replicas of everything around it."""
        gpus: Given | None = None
        for kind in ("limits", "requests"):
            section = source.get(source.get(node, "resources"), kind)
            for name in _GPU_KEYS:
                gpus = gpus or self.number(source.get(section, name))
        if gpus is None:
            return None
        for mapping in above:
            specs = source.get(mapping, "pytorchReplicaSpecs")
            if isinstance(specs, source.Mapping):
                counts = [self.number(source.get(value, "replicas")) or Given(1) for _, value in specs.pairs]
                total: Given = Given(0)
                for count in counts:
                    if isinstance(count.value, Unknown):
                        return count
                    total = Given(total.value + count.value, count.span)
                return product(total, gpus)
        for key in ("parallelism", "completions", "replicas", "numNodes"):
            for mapping in reversed(above):
                number = self.number(source.get(mapping, key))
                if number is not None:
                    return product(number, gpus)
        return gpus


def _rendered(word: Text) -> Text:
    """A word of a manifest with its template fields (`${X}`, `$(X)`, `{{ x }}`) as unknown parts."""
    out, at = Text(), 0
    for match in re.finditer(r"\$\{[^}]*\}|\$\([A-Za-z_]\w*\)|\{\{.*?\}\}", word.chars, re.S):
        place = word.at[match.start()] if word.at else -1
        reason = Unknown(f"{match.group()} is filled in when the manifest is rendered")
        out = out + word.part(at, match.start()) + Text(HOLE, (place,), (reason,))
        at = match.end()
    return out + word.part(at) if at else word
