"""Inputs for a run whose caller gives none: the data of the test-config, else seeded random data (NETLIST 5.4)."""

from collections.abc import Container, Iterator, Mapping, Sequence
from math import prod, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.inputs.entries import entries_read
from buda_emu.emulator.inputs.sparse import SparseShape, encoding_tiles, sparse_shape, sparse_tiles
from buda_emu.emulator.inputs.stimulus import generator, plain_values
from buda_emu.netlist.model import Netlist, Op, Program, Queue
from buda_emu.netlist.test_config import TestConfig
from buda_emu.netlist.yaml_text import parse_int
from buda_emu.spec.formats import is_integer, is_raw
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, NetlistError, UnsupportedError
from buda_emu.support.records import dataclass

_BLOCK_BYTES: Final = 8 << 20  # of float64 draws: bounds what is held at a time
_TOTAL_BYTES_LIMIT: Final = 2 << 30  # of float32 data; the largest public netlist takes 0.6 GiB
_ENCODINGS: Final = ("sparse_encoding", "sparse_encoding_nz_counts")


@dataclass(frozen=True, slots=True)
class InputBlock:
    """Consecutive entries of one queue: `array` [entries, t, rows, cols]; `slot` is the first one of a ram."""

    queue: str
    array: NDArray[Any]
    slot: int | None
    source: str  # where the data comes from, for people


@dataclass(frozen=True, slots=True)
class _DataNeeds:
    """The restrictions that the ops reading a queue put on its data: the op that takes it as sparse encoding or as
    sparse tiles, rows of the table that it indexes (0: none), whether it holds indices for topk."""

    encodes: Op | None = None
    sparse: Op | None = None
    table_rows: int = 0  # of the table that it indexes
    topk_indices: bool = False


def default_inputs(
    netlist: Netlist,
    config: TestConfig,
    programs: Sequence[Program],
    parameters: Mapping[str, str],
    seed: int,
    *,
    excluded: Container[str] = frozenset(),
    needed: Mapping[str, int] | None = None,
) -> Iterator[InputBlock]:
    """Yield data for every queue that the host fills, in document order, in blocks of some entries. A queue gets the
    entries that the programs read, a static one (prologue) and a ram all that it holds. A ram that an op fills is
    initialised where the netlist has more than one program (NETLIST 5.4) or where an op reads it. The data of a queue
    depends on `seed` and its name only. Queues in `excluded` are left out. `needed` is the result of `entries_read`,
    None to compute it. Raises NetlistError, HostError, ProgramError, UnsupportedError naming the queue."""
    if needed is None:
        needed = entries_read(netlist, programs, parameters)
    readers = _readers(netlist)
    entries: dict[str, int] = {}
    for queue in netlist.queues.values():
        if queue.name in excluded:
            continue
        if queue.host_fed and not queue.is_ram:
            entries[queue.name] = needed.get(queue.name, 0)
        elif queue.host_fed or _needs_content(netlist, queue, readers):
            entries[queue.name] = queue.entries
    _check_size(netlist, entries)
    for name, count in entries.items():
        queue = netlist.queues[name]
        yield from _blocks(queue, count, _Source(netlist, config, queue, readers.get(name, ()), seed))


def _needs_content(netlist: Netlist, queue: Queue, readers: Container[str]) -> bool:
    """Return whether a queue that an op fills is a ram that gets content before the first run: where the netlist has
    several programs (NETLIST 5.4), or an op reads it (`readers`). Rams between temporal graphs ("e2e") get none."""
    if not queue.is_ram or "e2e" in queue.name:
        return False
    return len(netlist.programs) > 1 or queue.name in readers


def _check_size(netlist: Netlist, entries: Mapping[str, int]) -> None:
    """Raise HostError, naming the largest queue, where the `entries` of all queues are more data than any real netlist
    needs."""
    sizes = {name: count * 4 * prod(netlist.queues[name].blocking.element_shape) for name, count in entries.items()}
    total = sum(sizes.values())
    if total > _TOTAL_BYTES_LIMIT:
        largest = max(sizes, key=lambda name: sizes[name])
        raise HostError(
            f"inputs of {total / 2**30:.1f} GiB are not generated (the limit is {_TOTAL_BYTES_LIMIT / 2**30:.0f} GiB); "
            f"queue {largest} alone takes {sizes[largest] / 2**30:.1f} GiB for "
            f"{plural(entries[largest], 'entry')}; "
            "give them as files: buda-emu run --inputs DIR, buda-emu test --reference DIR"
        )


def _blocks(queue: Queue, entries: int, source: "_Source") -> Iterator[InputBlock]:
    """Yield `entries` entries of a queue from its source in blocks of at most _BLOCK_BYTES, for a ram with their first
    slot."""
    step = max(1, _BLOCK_BYTES // (8 * prod(queue.blocking.element_shape)))
    for first in range(0, entries, step):
        array = source.entries(first, min(step, entries - first))
        yield InputBlock(queue.name, array, first if queue.is_ram else None, source.text)


Reader = tuple[Op, int]  # an op and the position of its input


def _readers(netlist: Netlist) -> dict[str, list[Reader]]:
    """Return the ops that read each queue directly, with the positions of their inputs."""
    readers: dict[str, list[Reader]] = {}
    for op in netlist.ops.values():
        for position, name in enumerate(op.inputs):
            if name in netlist.queues:
                readers.setdefault(name, []).append((op, position))
    return readers


def _data_needs(netlist: Netlist, readers: Sequence[Reader]) -> _DataNeeds:
    """Return the restrictions that the inputs of ops reading a queue (`readers`) put on its data; all empty where there
    are none."""
    encodes = sparse = None
    table_rows = 0
    topk_indices = False
    for op, position in readers:
        identity = op.type == "matmul" and op.attributes.identity
        if identity and position == 2:  # OPS 6.2: tiles, activations, encoding
            encodes = op
        elif identity and position == 0:
            sparse = op
        elif position == 1 and op.has("row-wise index"):
            table = netlist.queues.get(op.inputs[0])
            if table is not None:
                rows = table.blocking.element_shape[1]
                table_rows = min(table_rows or rows, rows)
        elif position == 1 and op.has("result indices"):
            topk_indices = True
    return _DataNeeds(encodes, sparse, table_rows, topk_indices)


class _Source:
    """The data of one queue, entry after entry. `text` names its origin for reports."""

    def __init__(
        self, netlist: Netlist, config: TestConfig, queue: Queue, readers: Sequence[Reader], seed: int
    ) -> None:
        base = queue.name.removesuffix(f".{queue.target_device}")
        self._netlist = netlist
        self._queue = queue
        self._data_needs = _data_needs(netlist, readers)
        self._stream = generator(seed, queue.name)
        self._named = config.named_stimulus(queue.name, base)
        self._config = config
        self.text = ""

    def entries(self, first: int, count: int) -> NDArray[Any]:
        """Return the next `count` entries [count, t, rows, cols], and set `text`; `first` is the number of the first
        one. Calls must follow each other in order, as random numbers are drawn. Raises NetlistError,
        UnsupportedError."""
        stimulus = self._named
        if self._data_needs.encodes is not None and (stimulus is None or stimulus.type in _ENCODINGS):
            if stimulus is not None:
                self.text = "test-config"
            else:
                self.text = "minimal sparse encoding"
            shape = self._sparse_shape(stimulus, self._data_needs.encodes)
            return np.concatenate([encoding_tiles(shape, stimulus, self._queue, self._stream) for _ in range(count)])
        if stimulus is not None and stimulus.type == "sparse":
            self.text = "test-config"
            shape = self._sparse_shape(stimulus, self._data_needs.sparse)
            return np.concatenate([sparse_tiles(shape, self._queue, self._stream) for _ in range(count)])
        if stimulus is not None:
            self.text = "test-config"
        elif self._data_needs.table_rows:
            self.text = "random rows of the table"
            stimulus = Stimulus("uniform", 0.0, float(self._data_needs.table_rows - 1))
        elif self._data_needs.topk_indices:
            self.text = "column numbers"
            return self._column_numbers(count)
        else:
            value = _known_constant(self._queue.name, self._config)
            if value is None:
                stimulus = self._config.default_stimulus
            else:
                stimulus = Stimulus("constant", constant_value=value)
            if value is None and self._config.has_default_stimulus:
                self.text = "test-config"
            else:
                self.text = "default"
        return self._plain_entries(stimulus, first, count)

    def _plain_entries(self, stimulus: Stimulus, first: int, count: int) -> NDArray[Any]:
        """Return `count` entries of a stimulus that does not depend on an op, in the element type of the queue
        (float32, or uint32 words); `first` is the number of the first one. Raises UnsupportedError for a type of
        stimulus that cannot be made."""
        queue = self._queue
        is_whole = is_integer(queue.df) or is_raw(queue.df)
        values = plain_values(stimulus, queue.blocking, first, count, is_whole, self._stream)
        if values is None:
            raise UnsupportedError(
                f"queue {queue.name}: a stimulus of type {stimulus.type or '(none)'!r} cannot be made here; "
                "give this input as a file: buda-emu run --inputs DIR, buda-emu test --reference DIR"
            )
        if is_raw(queue.df):
            words = np.clip(np.nan_to_num(values), -(1 << 31), (1 << 32) - 1)
            return (words.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
        with np.errstate(over="ignore"):  # what single precision cannot hold is infinite
            return values.astype(np.float32)

    def _sparse_shape(self, stimulus: Stimulus | None, reader: Op | None) -> SparseShape:
        """Return the parameters of a sparse encoding: of the op that the stimulus names, else of `reader`. Raises
        NetlistError where there is neither."""
        ops = self._netlist.ops
        named = ""
        if stimulus is not None:
            named = stimulus.matmul_ident_name
        op = ops.get(named) or ops.get(f"{named}.{self._queue.target_device}") or reader
        if op is None:
            raise NetlistError(f"queue {self._queue.name}: matmul_ident_name {named!r} is not an op")
        producer = self._netlist.queues.get(op.inputs[1]) or ops.get(op.inputs[1])
        return sparse_shape(op, producer.blocking.t if producer is not None else 1)

    def _column_numbers(self, count: int) -> NDArray[Any]:
        """Return entries in which each element is the number of its column: the indices that topk starts from."""
        shape = (count, *self._queue.blocking.element_shape)
        kind = np.uint32 if is_raw(self._queue.df) else np.float32
        return np.broadcast_to(np.arange(shape[-1], dtype=kind), shape).copy()


def _known_constant(name: str, config: TestConfig) -> float | None:
    """Return the constant that the vendor's harness gives a queue because of its name (NETLIST 5.1 "Names override"),
    such as eps; None for other names."""
    if "eps" in name:
        return float(np.finfo(np.float32).eps)
    if "reciprocal_of_sqrt_of_head_size" in name and "head_size" in config.args:  # of the training harness only
        return 1.0 / sqrt(_first_number(config, 4, "head_size"))
    if "mean" in name or "var" in name:
        return 1.0 / _first_number(config, 128, "sequence_length", "sequence_lenth")
    if "sum" in name:
        return 1.0
    return None


def _first_number(config: TestConfig, default: int, *names: str) -> int:
    """Return the first test-arg among these names that is a number above 0 (prefixes 0x and 0 allowed, NETLIST 5), else
    the default."""
    values = (parse_int(config.args.get(name, "")) for name in names)
    return next((value for value in values if value is not None and value > 0), default)
