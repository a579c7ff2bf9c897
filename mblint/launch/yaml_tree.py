"""YAML documents as override trees, by the rules of OmegaConf's loader."""

from __future__ import annotations

from mblint.launch.omega import Dict, Leaf, List, OmegaError, Tree, check_key, check_text
from mblint.read import yaml as source
from mblint.read.span import Span


def load_layer(text: str, path: str, schema: source.Schema = "omegaconf") -> Dict:
    """The one document of an override file as a tree with places. An empty file is an empty mapping.

    Raises OmegaError where upstream's loader refuses the file.
    """
    try:
        documents = source.read_yaml(text, path)
    except source.YamlError as error:
        raise OmegaError(error.reason, error.span) from None
    if len(documents) > 1:
        raise OmegaError("the file holds more than one YAML document", documents[1].span)
    if not documents or documents[0].root is None:
        return Dict({}, Span(path, 1, 1, 1, 1))
    root = yaml_tree(documents[0].root, schema)
    if isinstance(root, Leaf):
        if root.value is None:
            return Dict({}, root.span)
        if isinstance(root.value, str):  # OmegaConf reads a string again, and takes a bare word for a key without a value
            inner = source.read_yaml(root.value, path) if root.value.strip() else []
            if inner and not isinstance(inner[0].root, source.Scalar):
                return load_layer(root.value, path, schema)
            return Dict({root.value: Leaf(None, root.span)}, root.span)
        raise OmegaError("the file holds a single value and no mapping", root.span)
    if isinstance(root, List):
        raise OmegaError("the file holds a list, which cannot be merged with a config", root.span)
    return root


def yaml_tree(node: source.Node, schema: source.Schema = "omegaconf") -> Tree:
    """A YAML node as a tree. Raises OmegaError on duplicate keys, foreign tags, bad interpolations and alias
    bombs."""
    return _Builder(schema).build(node)


class _Builder:
    def __init__(self, schema: source.Schema) -> None:
        self.schema = schema
        self.count = 0

    def build(self, node: source.Node) -> Tree:
        self.count += 1
        if self.count > source.MAX_EXPANDED:
            raise OmegaError(f"the aliases of the file expand to more than {source.MAX_EXPANDED} nodes", node.span)
        try:
            if isinstance(node, source.Scalar):
                value = source.scalar_value(node, self.schema)
                if not isinstance(value, (str, int, float, bool, bytes, type(None))):
                    if self.schema == "omegaconf":
                        raise OmegaError(f"a value of type {type(value).__name__} is not supported", node.span)
                    value = node.text
                check_text(value, node.span)
                return Leaf(value, node.span)
            if node.tag and not node.tag.endswith((":seq", ":map")):
                raise OmegaError(f"the tag {node.tag} is not one that a safe YAML loader constructs", node.span)
            if isinstance(node, source.SequenceNode):
                return List([self.build(item) for item in node.items], node.span)
            return self.mapping(node)
        except source.YamlError as error:
            raise OmegaError(error.reason, error.span) from None

    def mapping(self, node: source.Mapping) -> Dict:
        seen: dict[str, Span] = {}
        for key, _ in node.pairs if self.schema == "omegaconf" else ():
            if isinstance(key, source.Scalar) and source.scalar_tag(key, self.schema) == "str":
                if key.text in seen:
                    raise OmegaError(f"the key {key.text!r} is given twice", key.span)
                seen[key.text] = key.span
        items: dict[object, Tree] = {}
        keys: dict[object, Span] = {}
        for key, value in source.merged_pairs(node, self.schema):
            if not isinstance(key, source.Scalar):
                raise OmegaError("a key has to be a scalar", key.span)
            name = source.scalar_value(key, self.schema)
            check_key(name, key.span)
            built = self.build(value)
            if isinstance(built, Leaf) and isinstance(value, source.Scalar) and not value.text:
                built.span = key.span  # an empty value has no width of its own
            keys[name] = key.span
            items[name] = built
        return Dict(items, node.span, keys=keys)
