"""Ways to spoil a valid netlist: its YAML tree with nodes dropped, doubled, replaced, renamed or exchanged."""

import json
import re
from typing import TypeAlias

from hypothesis import strategies as st

from buda_emu.netlist.nodes import Node, Scalar, Sequence

# A tree that can be changed: a text, a list, or the pairs of a map.
Tree: TypeAlias = "str | list[Tree] | dict[str, list[tuple[Tree, Tree]]]"
_PLAIN = re.compile(r"[\w$.+-]*")


def tree_of(node: Node) -> Tree:
    if isinstance(node, Scalar):
        return "null" if node.is_null else node.text
    if isinstance(node, Sequence):
        return [tree_of(item) for item in node.items]
    return {"pairs": [(tree_of(key), tree_of(value)) for key, value in node.pairs]}


def text_of(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree if _PLAIN.fullmatch(tree) and tree.strip() and tree not in ("-", "?") else json.dumps(tree)
    if isinstance(tree, list):
        return "[" + ", ".join(text_of(item) for item in tree) + "]"
    return "{" + ",\n ".join(f"? {text_of(key)}\n : {text_of(value)}" for key, value in tree["pairs"]) + "}"


def places(tree: Tree, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Paths of all values below the root."""
    children = (
        [value for _, value in tree["pairs"]] if isinstance(tree, dict) else tree if isinstance(tree, list) else []
    )
    found = [path] if path else []
    for index, child in enumerate(children):
        found += places(child, (*path, index))
    return found


WORDS = (
    "0 -1 1 2 3 7 64 99999 4294967295 2147483648 1.5 .nan true null r c z matmul nop reduce splice fused_op add src "
    "dst copy fwd HOST queue host dram Int8 Int32 Float32 Bfp2_b RawUInt32 input0 intermed0 intermed9 dest output"
)
scalars = st.sampled_from(WORDS.split()) | st.text(max_size=5)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(scalars, inner), max_size=3).map(lambda pairs: {"pairs": pairs})
    ),
    max_leaves=4,
)


@st.composite
def mutated(draw: st.DrawFn, original: Tree) -> Tree:
    """A tree with up to four of its nodes dropped, doubled, replaced, renamed or exchanged."""
    tree = json.loads(json.dumps(original))
    for _ in range(draw(st.integers(1, 4))):
        paths = places(tree)
        if not paths:
            break
        path = draw(st.sampled_from(paths))
        parent = tree
        for index in path[:-1]:
            parent = parent["pairs"][index][1] if isinstance(parent, dict) else parent[index]
        siblings = parent["pairs"] if isinstance(parent, dict) else parent
        index = path[-1]
        action = draw(st.sampled_from(["drop", "double", "replace", "rename", "exchange", "move"]))
        if action == "drop":
            del siblings[index]
        elif action == "double":
            siblings.insert(index, json.loads(json.dumps(siblings[index])))
        elif action == "move":
            siblings.append(siblings.pop(index))
        elif isinstance(parent, list):
            siblings[index] = draw(trees) if action == "replace" else siblings[draw(st.integers(0, len(siblings) - 1))]
        elif action == "replace":
            siblings[index] = [siblings[index][0], draw(trees)]
        elif action == "rename":
            siblings[index] = [draw(scalars), siblings[index][1]]
        else:
            other = siblings[draw(st.integers(0, len(siblings) - 1))]
            siblings[index] = [siblings[index][0], other[1]]
    return tree
