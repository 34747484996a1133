"""The `devices` section: which architectures the netlist is for, and which of them it is read for (NETLIST 1.2)."""

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.nodes import Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import body_of, keyed
from buda_emu.netlist.reader.values import kind_of, text_of
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH

NO_ARCH = "V002"


def read_devices(context: Context, node: Node) -> None:
    """Set `context.archs` and `context.arch`; unknown keys are V001, anything wrong with `arch` is V002."""
    context.subject = "devices"
    for key, key_node, value in keyed(context, body_of(context, "the section", node, NO_ARCH)):
        if key != "arch":
            context.report("V001", key_node, f"unknown key {quoted(key)}; the only one is arch", near(key, ("arch",)))
        elif isinstance(value, Sequence):
            _select(context, value)
        else:
            _single(context, value)


def _word(context: Context, node: Node) -> str | None:
    word = text_of(node).lower() if isinstance(node, Scalar) else ""
    if word in ARCHS:
        return word
    hint = near(word, ARCHS) or f"known are {', '.join(name for name, arch in ARCHS.items() if arch.documented)}"
    context.report(NO_ARCH, node, f"unknown architecture {kind_of(node)}", hint)
    return None


def _single(context: Context, node: Node) -> None:
    """One word: the netlist has no choice, a request for another architecture changes nothing."""
    word = _word(context, node)
    if word is None:
        return
    context.arch, context.archs = word, (word,)
    if context.requested_arch not in (None, word):
        message = f"the netlist is for {word} only and is read for it, not for {context.requested_arch}"
        context.report(NO_ARCH, node, message, severity="warning")


def _select(context: Context, node: Sequence) -> None:
    """A list: every word must be known (NETLIST 11.3 C4) and the requested one among them."""
    words = [_word(context, item) for item in node.items]
    known = tuple(word for word in words if word is not None)
    if not node.items:
        context.report(NO_ARCH, node, "the list of architectures is empty")
    if not known or len(known) < len(words):
        return
    context.archs = known
    requested = context.requested_arch
    if requested is None:
        context.arch = DEFAULT_ARCH if DEFAULT_ARCH in known else known[0]
    elif requested in known:
        context.arch = requested
    else:
        context.report(NO_ARCH, node, f"the netlist is not for {requested}", f"it is for {', '.join(known)}")
