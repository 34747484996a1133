"""Text -> the same text in the house's layout."""

from collections.abc import Iterator
from typing import Any, Final

from buda_emu.errors import InternalError
from buda_emu.garbage import no_collections
from buda_emu.netlist.formatter.layout import Layout
from buda_emu.netlist.formatter.source import read_spans
from buda_emu.netlist.yaml_reader import parser, read_tree

_CRLF: Final = "\r\n"


def formatted(text: str) -> str:
    """A netlist's text in the layout of docs/netlists/fmt.md. Comments, values and their spelling, and the order of
    everything stay; done twice it changes nothing more. What the rules say of the netlist does not matter, only that it
    is YAML.

    Raises UnreadableError for what is not a YAML document that could be a netlist, InternalError should the result not
    hold the very values of the text.
    """
    with no_collections():
        read_tree(text)
        written = Layout(text).write(read_spans(text))
        if not _same(text, written):
            raise InternalError("fmt would change a value: nothing was written")
    return written.replace("\n", _CRLF) if _CRLF in text else written


def _same(before: str, after: str) -> bool:
    return all(one == other for one, other in zip(_values(before), _values(after), strict=False))


def _values(text: str) -> Iterator[Any]:
    """What the parser says of a text, its places left out; None at the end."""
    from yaml import events

    get_event = parser(text).get_event
    while True:
        event = get_event()
        yield (
            event.__class__,
            *(getattr(event, name, None) for name in ("anchor", "tag", "value", "style", "flow_style")),
        )
        if isinstance(event, events.StreamEndEvent):
            yield None
            return
