"""The records of a schedule, frozen and named with the words of the format (facts GEMINI 2 and 3).

Both dialects are read into the same records. A field that a dialect lacks is None or empty. Boxes are as in the file;
ranges of output channels (dialect B) stand at the second coordinate. `place` of a record is its JSON pointer.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from buda_emu.foreign.gemini.boxes import Box

Dialect = Literal["A", "B"]
Region = tuple[int, int]
PlaceKind = Literal["core", "DRAM"]
TensorKind = Literal["ifmap", "weight", "ofmap"]
OutKind = Literal["weight", "fmap"]
StoreSource = Literal["DDR", "CORE"]


@dataclass(frozen=True, slots=True)
class Destination:
    """A receiver of a transfer. `workload_id` is None for DRAM."""

    place: str
    type: PlaceKind
    core_id: int
    workload_id: int | None
    layer_name: str | None = None


@dataclass(frozen=True, slots=True)
class DramIn:
    """A piece of a layer's output that arrives in DRAM. `related_ofmap` lists the ids of the `DramOut` entries that
    read it."""

    place: str
    transfer_id: int
    core_id: int
    workload_id: int
    layer_name: str | None
    box: Box
    related_ofmap: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DramOut:
    """A tensor that leaves DRAM, once for all its destinations. `size` is in bytes (dialect A) or bits (dialect B)."""

    place: str
    transfer_id: int
    type: OutKind
    size: int
    box: Box
    destination: tuple[Destination, ...]
    related_ifmap: tuple[int, ...]
    layer_name: str | None


@dataclass(frozen=True, slots=True)
class Source:
    """A piece of a tensor. Its box is in the tensor (dialect A) or in the producer's output (dialect B)."""

    place: str
    type: PlaceKind
    core_id: int
    transfer_id: int
    size: int
    box: Box
    layer_name: str | None
    channel: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Tensor:
    """An entry of `buffer`: a tensor in L2 when a workload starts."""

    place: str
    type: TensorKind
    box: Box
    transfer_id: tuple[int, ...]
    source: tuple[Source, ...]
    layer_name: str | None
    # dialect A
    tensor_id: int = -1
    address: int = 0
    size: int = 0
    align: int = 0
    bitwidth: int = 0
    tensor_order: int = 0
    newly_added: bool = False
    cur_wl_ifmap: bool = False
    start_send: bool = False
    # dialect B
    block: int = 0
    workload_id: int | None = None
    activations: bool = False  # a weight that a layer of the network makes

    @property
    def from_dram(self) -> bool:
        """True when a source of the tensor is DRAM, so the DRAM queue loads it."""
        return any(piece.type == "DRAM" for piece in self.source)


@dataclass(frozen=True, slots=True)
class WeightStore:
    """An entry of `wl0_buffer` or `wl1_buffer`, with address and size in rows of 64 bytes."""

    place: str
    address: int
    size: int
    transfer_id: tuple[int, ...]
    layer_name: str
    source: StoreSource
    tensor_order: int | None


@dataclass(frozen=True, slots=True)
class Ifmap:
    """The input of a workload: one record for each operand (dialect A), or one for all of them (dialect B)."""

    place: str
    transfer_id: tuple[int, ...]
    box: Box
    size: int = 0
    align: int = 0
    bitwidth: int = 0


@dataclass(frozen=True, slots=True)
class Ofmap:
    """A piece of a workload's output, in the workload's own coordinates (dialect A) or in those of the layer (dialect
    B)."""

    place: str
    transfer_id: int
    size: int
    box: Box
    destination: tuple[Destination, ...]

    @property
    def to_dram(self) -> bool:
        """True when DRAM is a destination of the piece."""
        return any(target.type == "DRAM" for target in self.destination)


@dataclass(frozen=True, slots=True)
class Weight:
    """The weights that a workload uses. `from_ofmap` marks activations that serve as weights (dialect B)."""

    place: str
    transfer_id: tuple[int, ...]
    box: Box
    size: int | None
    from_ofmap: bool


@dataclass(frozen=True, slots=True)
class Tile:
    """A part of a workload. Its boxes are in coordinates of the layer's output and of the producers' outputs, without
    padding."""

    place: str
    ofmap: Box
    ifmap: Box
    ifmap2: Box | None
    padding: tuple[int, int, int, int]  # top, bottom, left, right


@dataclass(frozen=True, slots=True)
class Workload:
    """A box of a layer's output that one core computes in one go. `index` is its position on the core."""

    place: str
    core: int
    index: int
    workload_id: int
    layer_name: str
    layer_type: str | None
    box: Box
    time: float
    ifmap: tuple[Ifmap, ...]
    ofmap: tuple[Ofmap, ...]
    ofmap_size: int
    weight: Weight | None
    buffer: tuple[Tensor, ...]
    # dialect A
    tiles: tuple[Tile, ...] = ()
    regions: tuple[Region, ...] | None = None  # None: not pairs of numbers (G047)
    wl0: tuple[WeightStore, ...] = ()

    @property
    def operand_ids(self) -> list[int]:
        """Transfer ids of all operands, in order; an id that two operands read stands there twice."""
        ids: list[int] = []
        for ifmap in self.ifmap:
            ids += ifmap.transfer_id
        return ids

    @property
    def reads(self) -> tuple[int, ...]:
        """Transfer ids of all operands and of the weight, each once."""
        if self.weight is not None:
            weight_ids = self.weight.transfer_id
        else:
            weight_ids = ()
        return tuple(dict.fromkeys([*self.operand_ids, *weight_ids]))

    def __str__(self) -> str:
        return f"core {self.core} workload {self.workload_id} ({self.layer_name})"


@dataclass(frozen=True, slots=True)
class Form:
    """The properties of a dialect. Code that works with a schedule asks these; only the reader asks for the dialect
    itself.

    `addressed`: tensors lie at addresses of L2; `tiled`: workloads have tiles; `in_bits`: sizes count bits, not bytes;
    `absolute`: boxes of pieces are in the layer's output, not in the workload's; `joint_operands`: one entry stands for
    all operands; `by_channel`: boxes of weights give output channels alone; `activations_as_weights`: a layer of the
    network may make weights; `global_ids`: workload ids are an order over all cores. `columns_of_dram`: columns of core
    ids beside the mesh that belong to DRAM; `dram`: core id of DRAM; `core_key`: key of the core in destinations and
    sources.
    """

    dialect: Dialect
    addressed: bool
    tiled: bool
    in_bits: bool
    absolute: bool
    joint_operands: bool
    by_channel: bool
    activations_as_weights: bool
    global_ids: bool
    columns_of_dram: int
    dram: int
    core_key: str


@dataclass(frozen=True, slots=True)
class IR:
    """A schedule. `cores` maps each core id of the file to its workloads in order; `buffersize` is None in dialect
    B."""

    form: Form
    cores: Mapping[int, Sequence[Workload]]
    dram_in: Sequence[DramIn]
    dram_out: Sequence[DramOut]
    xlen: int
    ylen: int
    buffersize: int | None
    path: str = field(default="", compare=False)
    document: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    @property
    def dialect(self) -> Dialect:
        """The name of the dialect, for people. Code asks `form` for the properties of a dialect."""
        return self.form.dialect

    @property
    def transfers(self) -> tuple[int, ...]:
        """Ids of everything that moves: results of workloads, and tensors that leave DRAM."""
        ids: list[int] = []
        for work in self.workloads():
            ids += [piece.transfer_id for piece in work.ofmap]
        ids += [out.transfer_id for out in self.dram_out]
        return tuple(dict.fromkeys(ids))

    def workloads(self) -> list[Workload]:
        """Return the workloads of all cores, core by core."""
        return list(chain.from_iterable(self.cores.values()))

    def buffer_entries(self) -> Iterator[tuple[Workload, Tensor]]:
        """Yield every buffer entry of every workload, with the workload."""
        for work in self.workloads():
            for tensor in work.buffer:
                yield work, tensor

    def position(self, core: int) -> tuple[int, int]:
        """Return column x and row y of a core on the mesh (facts GEMINI 2 and 3)."""
        columns = self.form.columns_of_dram
        return core % (self.xlen + columns) - columns // 2, core // (self.xlen + columns)

    def on_mesh(self, core: int) -> bool:
        """Return whether a core of this id has a place on the mesh."""
        x, y = self.position(core)
        return core >= 0 and 0 <= x < self.xlen and 0 <= y < self.ylen

    def to_json(self) -> dict[str, Any]:
        """Return a copy of the JSON object that the schedule was read from, with all its keys."""
        return deepcopy(dict(self.document))
