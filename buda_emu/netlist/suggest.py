"""Hints: which known word is near an unknown one."""

from collections.abc import Iterable

_MAX_WORD = 60  # nobody misspells a longer one
_MAX_CANDIDATES = 60  # comparing is slow, and a netlist may have thousands of names


def nearest(word: str, words: Iterable[str]) -> str:
    """The nearest of `words`, "" when none is near."""
    if not word or len(word) > _MAX_WORD:
        return ""
    candidates = [name for name in words if abs(len(name) - len(word)) < 4]
    if len(candidates) > _MAX_CANDIDATES:
        ends = (word[:2], word[-2:])
        candidates = [name for name in candidates if name[:2] == ends[0] or name[-2:] == ends[1]][:_MAX_CANDIDATES]
    folded = {name.lower(): name for name in candidates}
    if word.lower() in folded:
        return folded[word.lower()]
    from difflib import get_close_matches  # only needed once something is wrong

    found = get_close_matches(word, candidates, 1)
    return found[0] if found else ""


def near(word: str, words: Iterable[str]) -> str:
    """`did you mean 'x'?` with the nearest of `words`, or "" when none is near."""
    found = nearest(word, words)
    return f"did you mean '{found}'?" if found else ""


def quoted(text: str, limit: int = 40) -> str:
    """A text of the file in quotes, shortened for a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
