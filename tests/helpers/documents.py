"""Reads the marked code blocks of Markdown pages: `<!-- run -->`, `<!-- run with PACKAGE -->`, `<!-- output -->`,
`<!-- output with figures -->`, `<!-- command: NAME -->`."""

import doctest
import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"```(\w*)")
_MARK = re.compile(r"<!-- (.*) -->")


@dataclass(frozen=True, slots=True)
class Block:
    """A marked code block: where it starts, its mark, its language, its text."""

    line: int
    mark: str
    language: str
    text: str


def says(written: str, printed: str) -> bool:
    """Whether a page shows what was printed. `...` stands for anything; seconds and thread counts may differ."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(_timeless(written), _timeless(printed), flags)


def says_but_for_figures(written: str, printed: str) -> bool:
    """Whether a page shows what was printed, where a number stands for any number: for figures of models that get
    better, which a reader should see all the same."""
    return says(_without_figures(written), _without_figures(printed))


def _without_figures(text: str) -> str:
    """A text with 0 for each number that is no part of a word."""
    return re.sub(r"(?<![\w.])[0-9][0-9,]*(\.[0-9]+)?(?![\w])", "0", text)


def _timeless(text: str) -> str:
    return re.sub(r"\b[0-9]+\.[0-9]{3}$", "SECONDS", re.sub(r"[0-9]+ threads?", "N threads", text), flags=re.MULTILINE)


def marked_blocks(page: Path) -> list[Block]:
    """Every code block that stands directly under a mark, in order. A mark without a block is an error."""
    blocks = []
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines):
        mark = _MARK.fullmatch(line)
        if mark is None or mark[1].startswith("Generated"):
            continue
        fence = _FENCE.fullmatch(lines[number + 1])
        assert fence is not None, f"{page.name}:{number + 1}: no code block under {line}"
        end = lines.index("```", number + 2)
        blocks.append(Block(number + 2, mark[1], fence[1], "\n".join(lines[number + 2 : end]) + "\n"))
    return blocks
