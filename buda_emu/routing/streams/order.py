"""What comes before what: nodes of a graph in an order in which each stands after those that it follows; and walks
that go as deep as a graph is long, without Python's stack."""

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)
R = TypeVar("R")
Walk: TypeAlias = Generator["Walk[Any]", Any, R]
"""A function that yields the calls of itself, and is given what they return."""


def walked(walk: Walk[R]) -> R:
    """What a walk returns."""
    stack: list[Walk[Any]] = [walk]
    found: Any = None
    while stack:
        try:
            ahead = stack[-1].send(found)
        except StopIteration as end:
            stack.pop()
            found = end.value
        else:
            stack.append(ahead)
            found = None
    return found


def in_order(roots: Iterable[T], followers: Callable[[T], Iterable[T]], seen: set[T] | None = None) -> list[T]:
    """All that follows `roots`, and is not in `seen`, each before what follows it; they are added to `seen`.

    The last root and its last follower come first, as pipegen2 has them. In a circle each stands once.
    """
    seen = set() if seen is None else seen
    done: list[T] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        path: list[tuple[T, Iterator[T]]] = [(root, iter(followers(root)))]
        while path:
            node, ahead = path[-1]
            following = next((one for one in ahead if one not in seen), None)
            if following is None:
                done.append(node)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(followers(following))))
    done.reverse()
    return done
