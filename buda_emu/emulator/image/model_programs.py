"""Programs of a model that keeps caches from run to run: what an image says of them, and greedy decoding with one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.element_places import Multiples, last_strided_place, strided_places
from buda_emu.emulator.image.fields import list_of, natural, positive, required_field, text
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError


@dataclass(frozen=True, slots=True)
class ModelProgram:
    """A program as the host sees it: the `name` that calls give, the `program` of the netlist, and the labels of its
    inputs and outputs, in order."""

    name: str = required_field(text)
    program: str = required_field(text)
    inputs: tuple[str, ...] = required_field(list_of(text))
    outputs: tuple[str, ...] = required_field(list_of(text))


@dataclass(frozen=True, slots=True)
class ModelState:
    """A cache in a ram. `queue` is the ram that the host fills, and `slots` the number of its entries that hold the
    cache. The places of its elements among those of the entries, in the order of `shape`, are the sums of a multiple of
    each stride; a piece is the number of multiples and the stride."""

    label: str = required_field(text)
    queue: str = required_field(text)
    slots: int = required_field(positive)
    shape: tuple[int, ...] = required_field(list_of(positive))
    pieces: tuple[Multiples, ...] = required_field(list_of(list_of(natural, 2)))

    @property
    def last_place(self) -> int:
        """The greatest place of an element among the numbers of the entries."""
        return last_strided_place(self.pieces)

    def content(self, entries: "Array") -> "Array":
        """Return the cache as an array of its `shape`, from the entries of its ram."""
        return entries[: self.slots].reshape(-1)[strided_places(self.pieces)].reshape(self.shape)


def require_rounds(program: str, count: int, write_index: int, *, room: int, slots: int) -> None:
    """Raise HostError unless a program can do `count` rounds in one run, the first of which writes slot `write_index`
    of its caches. Its queues have `room` for so many rounds, and its caches have so many `slots`."""
    rounds = plural(count, "round")
    if not 1 <= count <= room:
        raise HostError(f"{program}: {rounds} in one run; its queues hold {room:,}")
    if not 0 <= write_index <= slots - min(count, slots):
        raise HostError(f"{program}: write_index {write_index} for {rounds}; its caches have {plural(slots, 'slot')}")


@dataclass(frozen=True, slots=True)
class WindowProgram:
    """A program that takes a window of tokens [1, n] and their positions [1, n] and returns scores [1, n, tokens].

    `shapes` are those of its inputs; `slots` is the number of windows that its caches hold, and `room` the largest
    number of rounds of one run. `run` runs rounds from a write index on and returns the scores of the last one."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    slots: int
    room: int
    run: "Callable[[Sequence[tuple[Array, Array]], int], Array]"

    def generate(self, prompt: Sequence[int], count: int, stop: int | None = None) -> list[int]:
        """Return the tokens that follow a prompt, each the one with the highest score: at most `count`, none after
        `stop`. The prompt's windows take one run, or more where the queues hold fewer, slot after slot; then each token
        takes one run on the slot of its window. Raises HostError for inputs of other shapes, an empty prompt, and
        caches that are too short."""
        if len(self.shapes) != 2 or self.shapes[0] != self.shapes[1] or len(self.shapes[0]) != 2:
            self._refuse_shapes()
        if self.shapes[0][0] != 1:
            self._refuse_shapes()
        width = self.shapes[0][1]
        tokens = [int(token) for token in prompt]
        longest = width * self.slots
        if not tokens:
            raise HostError("generate: the prompt has no tokens: give at least the one that a text begins with")
        if len(tokens) + count - 1 > longest:
            raise HostError(self._too_long_message(f"{plural(len(tokens), 'token')} and {count} more", width))
        first = 0
        for _ in range(count):
            last = (len(tokens) - 1) // width
            scores: Array = np.zeros(0)
            for start in range(first, last + 1, self.room):
                windows = range(start, min(start + self.room, last + 1))
                scores = self.run([_window_of_tokens(tokens, window, width) for window in windows], start)
            first = last
            tokens.append(int(np.argmax(scores[0, (len(tokens) - 1) % width])))
            if tokens[-1] == stop:
                break
        return tokens[len(prompt) :]

    def _too_long_message(self, tokens: str, width: int) -> str:
        """Return the message for more tokens than the caches have room for; `tokens` has their number in words, `width`
        is that of a window."""
        room = f"{plural(self.slots, 'window')} of {plural(width, 'token')}"
        message = f"generate: {tokens}; caches have room for {width * self.slots}, {room}"
        if self.slots > 1:
            return message
        return (
            f"{message}: caches that are written as a whole are one window, however long they are. Return the slot of "
            "the window instead (docs/compile/generate.md), or call the model once for each token"
        )

    def _refuse_shapes(self) -> None:
        """Raise HostError because the program's inputs are not tokens and positions."""
        raise HostError(f"generate: {self.name} takes {list(self.shapes)}, not tokens [1, n] and positions [1, n]")


def _window_of_tokens(tokens: Sequence[int], window: int, width: int) -> "tuple[Array, Array]":
    """Return the tokens [1, width] of window number `window`, with zeros after the last token, and their positions [1,
    width]."""
    window_tokens = list(tokens[window * width : (window + 1) * width])
    positions = np.arange(window * width, (window + 1) * width)[None]
    return np.asarray([window_tokens + [0] * (width - len(window_tokens))]), positions
