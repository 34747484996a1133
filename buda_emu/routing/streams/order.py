"""What comes before what: nodes of a graph in an order in which each stands after those that it follows."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


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
