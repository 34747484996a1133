"""Texts that nobody writes, pasted into an editor: whatever is asked of them is answered soon."""

import random
import time
from contextlib import suppress

import pytest

from buda_emu.app.editor.completion import complete
from buda_emu.app.editor.hover import hover
from buda_emu.app.editor.outline import foldings, hints, parts, semantic_tokens
from buda_emu.app.editor.place import place_at
from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.yaml_reader import UnreadableError
from shared_files import ROOT

SECONDS = 20
"""Of processor time for all questions about one text: each of them takes a fraction of it on a slow machine."""
SIZE = 100_000
"""Characters of a text, about."""
NETLIST = (ROOT / "netlists" / "attention.yaml").read_text()


def _nested(begin, line, size):
    count = int((2 * size) ** 0.5)
    return begin + "".join(f"{' ' * number}{line}\n" for number in range(1, count))


FAMILIES = {
    "nested maps": lambda size: _nested("", "a:", size),
    "nested maps in a section": lambda size: _nested("queues:\n", "a:", size),
    "nested lists": lambda size: _nested("graphs:\n", "-", size),
    "nested maps of lists": lambda size: _nested("programs:\n", "- a:", size),
    "lists on one line": lambda size: "programs: \n" + "- " * (size // 2) + "a",
    "flow lists": lambda size: "queues: " + "[" * size,
    "flow maps": lambda size: "queues: " + "{" * size,
    "flow maps with keys": lambda size: "queues: " + "{a: " * (size // 4),
    "closed flow lists": lambda size: "queues: " + "[" * (size // 2) + "]" * (size // 2),
    "flow lists of lines": lambda size: "queues: {\n" + "  a: [\n" * (size // 7),
    "closing brackets": lambda size: "queues:\n" + "  ]}\n" * (size // 5),
    "a long plain line": lambda size: "queues: " + "a" * size,
    "a long line of words": lambda size: "queues: " + "a " * (size // 2),
    "a long line of colons": lambda size: "queues: " + "a:" * (size // 2),
    "a long line of entries": lambda size: "queues: {" + "a: 1, " * (size // 6) + "}",
    "a long key": lambda size: "a" * size + ": 1",
    "single quotes": lambda size: "queues: " + "'" * (size + 1),
    "escaped quotes": lambda size: 'queues: "' + '\\"' * (size // 2),
    "odd quotes": lambda size: "queues:\n" + "".join(f"  a{n}: 'b\n" for n in range(size // 10)),
    "spaces": lambda size: "queues:" + " " * size + "x",
    "spaces behind a bar": lambda size: "queues: |" + " " * size + "x",
    "bars": lambda size: "queues: " + "| " * (size // 2),
    "comments": lambda size: "queues:\n" + "  # a\n" * (size // 6),
    "signs of comments": lambda size: "queues: " + "#" * size,
    "dashes": lambda size: "-" * size,
    "tabs": lambda size: "queues:\n" + "\t" * size,
    "empty lines": lambda size: "\n" * size,
    "anchors": lambda size: "".join(f"a{n}: &x{n} 1\n" for n in range(size // 14)),
    "anchors of anchors": lambda size: "a0: &x0 [1]\n" + "".join(
        f"a{n}: &x{n} [*x{n - 1}, *x{n - 1}]\n" for n in range(1, size // 24)
    ),
    "one anchor used often": lambda size: "a: &x {b: 1, c: 2}\n" + "".join(f"a{n}: *x\n" for n in range(size // 10)),
    "merge keys": lambda size: "a: &x {b: 1}\n" + "".join(f"a{n}: {{<<: *x}}\n" for n in range(size // 16)),
    "many documents": lambda size: "--- a\n" * (size // 6),
    "the same key": lambda size: "queues:\n" + "  a: {type: queue}\n" * (size // 19),
    "many wrong queues": lambda size: "queues:\n" + "".join(
        f"  q{n}: {{type: quue, input: nothing, entries: -1, grid_size: x}}\n" for n in range(size // 64)
    ),
    "many wrong ops": lambda size: "graphs:\n  g:\n    target_device: 0\n" + "".join(
        f"    o{n}: {{type: reluu, inputs: [o{n + 1}], t: 1}}\n" for n in range(size // 48)
    ),
    "many wrong instructions": lambda size: "programs:\n  - p:\n" + "    - varinst: [$a, add, $b]\n" * (size // 32),
    "pieces that cannot be read": lambda size: "queues:\n" + "".join(f"  a{n}: [\n" for n in range(size // 9)),
    "a netlist again and again": lambda size: NETLIST * (size // len(NETLIST) + 1),
    "lines that are no entries": lambda size: "queues:\n" + "  a b\n" * (size // 6),
    "less and less indented": lambda size: "queues:\n" + "".join(
        " " * number + "a:\n" for number in range(int((2 * size) ** 0.5), 0, -1)
    ),
}  # fmt: skip
"""Texts of a kind, of about so many characters."""
QUICK = SIZE // 5


def _ask_everything(content, chance):
    text = OpenText(content, "odd.yaml", TreeReader())
    assert len(text.findings) < 200_000
    _ = text.names.all, text.fixable
    lines = len(text.lines)
    for line in {1, lines, (lines + 1) // 2, chance.randint(1, lines), chance.randint(1, lines)}:
        row = text.lines[line - 1]
        for column in {1, len(row) + 1, chance.randint(1, len(row) + 1)}:
            place_at(text.lines, line, column)
            complete(text, line, column)
            hover(text, line, column)
            text.names.at(line, column)
    for answers in (parts(text), foldings(text), semantic_tokens(text), hints(text, 1, lines)):
        for _ in answers:
            pass
    with suppress(UnreadableError):
        format_text(content)


@pytest.mark.parametrize("size", [QUICK, pytest.param(SIZE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_question_about_an_odd_text_is_answered_soon(family, size):
    begin = time.process_time()
    _ask_everything(FAMILIES[family](size), random.Random(size))
    assert time.process_time() - begin < SECONDS
