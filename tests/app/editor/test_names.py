"""Names and their places, held against the loaded model."""

import pytest

from buda_emu.app.editor.names import Names
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Allocate, Deallocate, Declare, Execute, Loop, Param, VarInst
from buda_emu.netlist.yaml_reader import decode, read_tree
from buda_emu.spec.varinst import is_variable, stored_name
from shared_files import ROOT, corpus_files

OWN = sorted(ROOT.glob("netlists/*.yaml"))
PUBLIC = corpus_files("netlists/**/*.yaml")


def _used(netlist):
    """How often the model uses each name: (kind, name) -> places, copies for several chips counted once."""
    found = {}

    def add(kind, name, scope=""):
        found[kind, name, scope] = found.get((kind, name, scope), 0) + 1

    def source(name, kinds=("queue", "op")):
        for text in (name, name.rpartition(".")[0]):
            for kind, table in (("queue", queues), ("op", ops)):
                if kind in kinds and text in table:
                    add(kind, text)
                    return

    queues = {queue.written_name: queue for queue in reversed(netlist.queues.values())}
    ops = {}
    for op in netlist.ops.values():
        ops.setdefault(op.written_name, op)
    for queue in queues.values():
        source(_written(queue, "input"), ("op",))
        source(_written(queue, "alias"), ("queue",))
    for op in ops.values():
        for item in op.source.find("inputs").items:
            source(item.text)
        fused = op.source.find("attributes")
        if fused is not None and hasattr(fused, "find") and fused.find("fused_op_id") is not None:
            add("fused op", fused.find("fused_op_id").text)
        for fork in getattr(op.source.find("forked_dram_inputs"), "items", ()):
            for queue, reader in ((key.text, value.text) for key, value in fork.pairs):
                source(queue, ("queue",))
                source(reader, ("op",))
    for program in netlist.programs.values():
        _of_program(program, add, source)
    return found


def _written(item, key):
    node = item.source.find(key)
    return node.text if node is not None else ""


def _of_program(program, add, source):
    def variable(text):
        if is_variable(text):
            add("variable", stored_name(text), program.name)

    for step in program.instructions:
        match step:
            case VarInst():
                for text in (step.out, *step.args):
                    variable(text)
            case Loop():
                variable(step.count)
            case Allocate() | Deallocate():
                for name in step.queues:
                    source(name, ("queue",))
            case Execute():
                add("graph", step.graph)
                for settings in step.queue_settings:
                    source(settings.queue, ("queue",))
                    for _, value in settings.source.pairs:
                        variable(value.text)
            case Declare() | Param():
                pass


def _hold(path):
    text = decode(path.read_bytes())
    netlist = check_text(text, str(path)).netlist
    if netlist is None or len(netlist.programs) != len(netlist.program_order):
        return False
    names = Names(TreeReader().read(text).root)
    lines = text.splitlines()
    for name in names.all:
        assert lines[name.line - 1][name.column - 1 : name.end - 1] == name.text
        assert names.at(name.line, name.column) == name
        definition = names.definition(name)
        if name.kind != "variable":
            assert definition is not None, name
            assert definition.text == name.text
    uses = {}
    for name in names.all:
        if not name.defines:
            uses[name.key] = uses.get(name.key, 0) + 1
    if "&" not in text and "*" not in text:
        assert uses == _used(netlist)
    for kind, table in (("graph", netlist.graphs), ("fused op", netlist.fused_ops), ("program", netlist.programs)):
        written = {name.text for name in names.definitions(kind)}
        assert written == set(table) or any("." in key for key in table)
    assert {name.text for name in names.definitions("op")} == {op.written_name for op in netlist.ops.values()}
    assert {name.text for name in names.definitions("queue")} == {
        queue.written_name for queue in netlist.queues.values()
    }
    return True


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_names_of_own_netlists(path):
    assert _hold(path)


@pytest.mark.parametrize("path", PUBLIC[::15])
def test_names_of_some_public_netlists(path):
    _hold(path)


@pytest.mark.slow
def test_names_of_public_netlists():
    held = sum(_hold(one.values[0]) for one in PUBLIC if one.values[0] is not None)
    assert held >= 300 or PUBLIC[0].values[0] is None


def test_pieces_make_the_tree_of_the_whole():
    for path in (*OWN, *(one.values[0] for one in PUBLIC[::15] if one.values[0] is not None)):
        text = decode(path.read_bytes())
        reader = TreeReader()
        for version in (text, f"# above\n{text}", text.replace(": 1,", ": 2,", 3), text):
            assert _plain(reader.read(version).root) == _plain(read_tree(version))


def _plain(node):
    place = (node.line, node.column, node.end_column)
    if hasattr(node, "text"):
        return (*place, node.text, node.plain)
    pairs = [one for pair in getattr(node, "pairs", ()) for one in pair]
    inside = node.items if isinstance(getattr(node, "items", None), list) else pairs
    return (*place, type(node).__name__, [_plain(one) for one in inside])


@pytest.mark.parametrize("out", [0, 2, 3, 4])
def test_lines_of_a_bracket_may_stand_anywhere(out):
    text = (ROOT / "netlists/attention.yaml").read_text().replace("\n         ", f"\n{' ' * out}")
    tree = TreeReader().read(text)
    assert tree.problem is None
    assert _plain(tree.root) == _plain(read_tree(text))


def test_a_broken_entry_hides_nothing_but_itself():
    text = (ROOT / "netlists/attention.yaml").read_text().replace("inputs: [q, k],", "inputs: [q, k,", 1)
    tree = TreeReader().read(text)
    assert tree.problem is not None
    names = {name.text for name in Names(tree.root).definitions("op")}
    assert {"q", "k", "v", "scaled", "residual"} <= names
    assert "dots" not in names
