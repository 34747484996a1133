"""Hints: which known word is near an unknown one."""

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str:
    """The nearest of `words`, "" when none is near."""
    from difflib import get_close_matches  # only needed once something is wrong

    if len(word) > 60:
        return ""
    known = list(words)
    folded = {name.lower(): name for name in known}
    if word.lower() in folded:
        return folded[word.lower()]
    found = get_close_matches(word, known, 1)
    return found[0] if found else ""


def near(word: str, words: Iterable[str]) -> str:
    """`did you mean 'x'?` with the nearest of `words`, or "" when none is near."""
    found = nearest(word, words)
    return f"did you mean '{found}'?" if found else ""


def quoted(text: str, limit: int = 40) -> str:
    """A text of the file in quotes, shortened for a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
