"""Run a schedule on the bytes of L2s and a DRAM, and compare with the network computed without tiles (facts GEMINI
6)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.gemini.boxes import Box, Coordinates, hull
from buda_emu.foreign.gemini.execution_network import DTYPES, LaidWeights, Values, Weights
from buda_emu.foreign.gemini.frontend import Layer, read_network
from buda_emu.foreign.gemini.index import Index, find_read_tensor, tensors_holding
from buda_emu.foreign.gemini.model import IR, DramOut, Ifmap, Region, Tensor, Tile, Workload
from buda_emu.foreign.gemini.sizes import (
    CHANNELS,
    EXTRA,
    channel_multiple,
    fmap_bytes,
    pieces,
    region_of,
    round_up,
    weight_bytes,
)
from buda_emu.foreign.gemini.time.plan import DramTransfer, Send, Step, make_plan
from buda_emu.support.errors import UnsupportedError

NO_SUCH_LAYER: Final = "the network has no such layer"
"""The message of a workload whose layer the network does not have."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between a run and the network. `workload_id` is None for an output of the network and for a run that
    stopped."""

    core: int | None
    workload_id: int | None
    layer: str
    message: str

    def __str__(self) -> str:
        prefix = ""
        if self.core is not None:
            prefix += f"core {self.core} "
        if self.workload_id is not None:
            prefix += f"workload {self.workload_id} "
        if self.layer:
            prefix += f"({self.layer}): "
        return f"{prefix}{self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """The result of a run. `outputs` are the network outputs by layer, N C H W in their own type; `seeded` lists the
    layers whose weights were made from the seed because the caller gave none; `workloads` counts those that ran."""

    mismatches: Sequence[Mismatch]
    outputs: "Mapping[str, NDArray[Any]]"
    seeded: Sequence[str]
    workloads: int

    @property
    def is_vacuous(self) -> bool:
        """True when nothing was compared: neither a workload nor an output."""
        return not self.outputs and not self.workloads

    @property
    def ok(self) -> bool:
        """True when every workload and every output has the bits of the un-tiled run, and there was one of them."""
        return not self.mismatches and not self.is_vacuous

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each output's bytes in C order, by layer."""
        return {name: sha256(values.tobytes()).hexdigest() for name, values in self.outputs.items()}


def execute(
    ir: "IR",
    frontend: "str | os.PathLike[str] | Mapping[str, Any]",
    *,
    seed: int = 0,
    weights: "Mapping[str, Weights] | None" = None,
) -> Execution:
    """Run a schedule of dialect A on real bytes, and compare every workload with the un-tiled run.

    `frontend` is the path or the decoded object of the network. `weights` maps a layer to (int8 [K, C, R, S], scale
    [K], bias [K]); weights that are absent there are made from the seed, and so are the network's inputs. Faults of the
    schedule are recorded in `.mismatches`. Raises UnsupportedError, by name, for constructs that are not emulated
    (dialect B among them), ScheduleError for a network that cannot be computed, ProgramError for a schedule that cannot
    be followed at all.
    """
    return run_schedule(ir, frontend, seed, weights)


_MOST = 1 << 34  # bytes of an L2 that is emulated
_BITS: Final = {8: np.int8, 16: np.float16}


class Fault(Exception):  # noqa: N818 - of the emulated hardware, not of a caller
    """An access that the emulated hardware would get wrong; the run records it as a mismatch."""


class L2:
    """The L2 of one core. Feature maps lie in order N H W C with padded channels; a tensor wraps within its ring
    region."""

    def __init__(self, size: int) -> None:
        if size > _MOST:
            raise UnsupportedError(f"an L2 of {size} bytes is more than the {_MOST} that are emulated")
        self._bytes = np.zeros(size, np.uint8)
        self._written = np.zeros(size, np.bool_)

    def read_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box) -> NDArray[Any]:
        """Return a box of a feature map as N C H W, the box being in the tensor's own coordinates. Raises Fault for
        unwritten bytes."""
        ranges = self._byte_ranges(regions, tensor)
        if not box.inside(tensor.box):
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, which is {tensor.box}")
        part = _nhwc_slices(box.within(tensor.box))
        values = _view_elements(_gather(self._bytes, ranges), tensor)[part]
        written = _view_elements(_gather(self._written, ranges), tensor)[part]
        if not written.all():
            count = written.size - int(written.sum())
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, but {count} bytes of it were never written")
        return values.transpose(0, 3, 1, 2)

    def write_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box, values: NDArray[Any]) -> None:
        """Write N C H W values to a box of a feature map. A box that reaches the last channel also zeroes the
        padding after it. Raises Fault where box, shape or type do not fit the tensor."""
        ranges = self._byte_ranges(regions, tensor)
        if not box.inside(tensor.box) or box.shape != values.shape:
            raise Fault(f"{list(values.shape)} values are written to {box} of tensor {tensor.tensor_id}, {tensor.box}")
        if values.dtype != _BITS[tensor.bitwidth]:
            raise Fault(f"{values.dtype} values are written to tensor {tensor.tensor_id} of {tensor.bitwidth} bits")
        part = _nhwc_slices(box.within(tensor.box))
        content = _gather(self._bytes, ranges)
        written = _gather(self._written, ranges)
        _view_elements(content, tensor)[part] = values.transpose(0, 2, 3, 1)
        _view_elements(written, tensor)[part] = True
        if box.upper[1] == tensor.box.upper[1]:
            behind = (part[0], part[1], part[2], slice(tensor.box.shape[1], None))
            _view_elements(content, tensor)[behind] = 0
            _view_elements(written, tensor)[behind] = True
        if len(ranges) > 1:  # copies were changed
            _scatter(self._bytes, ranges, content)
            _scatter(self._written, ranges, written)

    def read_weight(self, regions: Sequence[Region] | None, tensor: Tensor) -> NDArray[np.uint8]:
        """Return the bytes of a weight. Raises Fault if any of them was never written."""
        ranges = self._byte_ranges(regions, tensor)
        if not _gather(self._written, ranges).all():
            raise Fault(f"weight tensor {tensor.tensor_id} is read before it is written")
        return _gather(self._bytes, ranges)

    def write_weight(self, regions: Sequence[Region] | None, tensor: Tensor, content: NDArray[np.uint8]) -> None:
        """Write all bytes of a weight. Raises Fault where their number is not that of the tensor's box."""
        ranges = self._byte_ranges(regions, tensor)
        if content.size != weight_bytes(tensor.box):
            raise Fault(f"{content.size} bytes of weights are written to tensor {tensor.tensor_id}, {tensor.box}")
        _scatter(self._bytes, ranges, content)
        _scatter(self._written, ranges, np.ones(content.size, np.bool_))

    def _byte_ranges(self, regions: Sequence[Region] | None, tensor: Tensor) -> list[Region]:
        """Return the byte ranges that a tensor occupies: one, or two where it wraps. Raises Fault where it fits no
        region."""
        if tensor.bitwidth not in _BITS:
            raise Fault(f"tensor {tensor.tensor_id} has {tensor.bitwidth} bits")
        weight = tensor.type == "weight"
        if weight:
            size = weight_bytes(tensor.box)
        else:
            size = fmap_bytes(tensor.box, tensor.bitwidth)
        region = region_of(regions or (), tensor.address)
        if region is None:
            raise Fault(f"tensor {tensor.tensor_id} at {tensor.address} is in no ring region")
        low, high = region
        if low < 0 or high > self._bytes.size or size > high - low:
            raise Fault(f"tensor {tensor.tensor_id} of {size} bytes does not fit the region [{low}, {high}]")
        return pieces(region, tensor.address, size)


def _gather(array: NDArray[Any], ranges: Sequence[Region]) -> NDArray[Any]:
    """Return the bytes of the ranges as one array: a view of a single range, a copy of several."""
    stretches = [array[low:high] for low, high in ranges]
    if len(stretches) == 1:
        return stretches[0]
    return np.concatenate(stretches)


def _scatter(array: NDArray[Any], ranges: Sequence[Region], content: NDArray[Any]) -> None:
    """Write the content to the ranges of the array, in order."""
    at = 0
    for low, high in ranges:
        array[low:high] = content[at : at + high - low]
        at += high - low


def _view_elements(content: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
    """View bytes as elements [N, H, W, padded C], and flags of bytes as [N, H, W, padded C, bytes of an element]."""
    n, c, h, w = tensor.box.shape
    channels = round_up(c, channel_multiple(tensor.bitwidth))
    if content.dtype == np.bool_:
        return content.reshape(n, h, w, channels, tensor.bitwidth // 8)
    return content.view(_BITS[tensor.bitwidth]).reshape(n, h, w, channels)


def _nhwc_slices(box: Box) -> tuple[slice, slice, slice, slice]:
    """Return the index that selects the box from an array N H W C."""
    n, c, h, w = box.slices()
    return n, h, w, c


def weight_image(weights: Weights, box: Box) -> NDArray[np.uint8]:
    """Return the bytes of a part of a layer's weights, box [0, K, C, R*S]: for each K the values [R*S][padded C],
    a float32 scale, a float32 bias and 24 zeros (facts GEMINI 2.5). Raises Fault for a box that the layer does
    not have."""
    values, scale, bias = weights
    k, c, r, s = values.shape
    if box.upper[1] >= k or box.upper[2] >= c or box.upper[3] >= r * s:
        raise Fault(f"weights {box} are loaded, the layer has {[0, k - 1, c - 1, r * s - 1]}")
    _, ks, cs, taps = box.slices()
    part = values.reshape(k, c, r * s)[ks, cs, taps]
    count, channels, window = part.shape
    image = np.zeros((count, window * round_up(channels, CHANNELS) + EXTRA), np.uint8)
    body = image[:, :-EXTRA].view(np.int8).reshape(count, window, -1)
    body[:, :, :channels] = part.transpose(0, 2, 1)
    image[:, -EXTRA : 4 - EXTRA] = np.ascontiguousarray(scale[ks]).view(np.uint8).reshape(-1, 4)
    image[:, 4 - EXTRA : 8 - EXTRA] = np.ascontiguousarray(bias[ks]).view(np.uint8).reshape(-1, 4)
    return image.reshape(-1)


class Dram:
    """The DRAM: one array N C H W for the output of each layer, in the layer's own type."""

    def __init__(self) -> None:
        self.values: dict[str, NDArray[Any]] = {}
        self._written: dict[str, NDArray[np.bool_]] = {}

    def make(self, layer: str, shape: Coordinates, dtype: Any) -> None:
        """Reserve unwritten room for a layer's output."""
        self.values[layer] = np.zeros(shape, dtype)
        self._written[layer] = np.zeros(shape, np.bool_)

    def fill(self, layer: str, values: NDArray[Any]) -> None:
        """Write all values of a network input, or of a layer that runs before the schedule."""
        self.values[layer] = values
        self._written[layer] = np.ones(values.shape, np.bool_)

    def read(self, layer: str, box: Box) -> NDArray[Any]:
        """Return a box of a layer's output. Raises Fault where a part of it was never written."""
        self._check(layer, box)
        if not self._written[layer][box.slices()].all():
            raise Fault(f"{box} of {layer!r} is loaded from DRAM before all of it is stored")
        return self.values[layer][box.slices()]

    def write(self, layer: str, box: Box, values: NDArray[Any]) -> None:
        """Store the values of a box. Raises Fault where shape, type or box do not fit."""
        self._check(layer, box)
        if values.shape != box.shape or values.dtype != self.values[layer].dtype:
            raise Fault(f"{list(values.shape)} {values.dtype} values are stored as {box} of {layer!r}")
        self.values[layer][box.slices()] = values
        self._written[layer][box.slices()] = True

    def _check(self, layer: str, box: Box) -> None:
        """Raise Fault unless DRAM has room for the layer's output and the box lies in it."""
        if layer not in self.values:
            raise Fault(f"DRAM has no {layer!r}")
        shape = self.values[layer].shape
        if any(high >= extent for high, extent in zip(box.upper, shape, strict=True)):
            raise Fault(f"{box} of {layer!r} in DRAM, which has {list(shape)}")


Array = NDArray[Any]


def run_schedule(ir: IR, frontend: Any, seed: int, weights: "Mapping[str, Weights] | None") -> Execution:
    """Run a schedule, compare every workload with the network computed without tiles, and return what differs. The
    arguments are those of `execute`. Raises UnsupportedError for a schedule without addresses."""
    if not ir.form.addressed:
        raise UnsupportedError(
            "execution of a schedule without addresses (dialect B): `alloc` makes one with addresses"
        )
    network = read_network(frontend)
    scheduled_layers = {work.layer_name for work in ir.workloads()}
    values = Values(network, scheduled_layers & set(network.layers), seed, weights)
    run = _Run(ir, values)
    run.run_to_end()
    caller_layers = set(weights or ())
    return Execution(
        mismatches=tuple(run.mismatches),
        outputs=run.outputs(),
        seeded=tuple(name for name in values.weights if name not in caller_layers),
        workloads=len(list(ir.workloads())),
    )


class _Run:
    """One run of a schedule: the state of every L2, of DRAM, of the DRAM queue and of pieces on their way between
    cores."""

    def __init__(self, ir: IR, values: Values) -> None:
        self.ir = ir
        self.index = Index(ir)
        self.plan = make_plan(self.index)
        self.values = values
        size = ir.buffersize or 0
        self.l2 = {core: L2(size) for core in ir.cores}
        self.dram = Dram()
        self.mismatches: list[Mismatch] = []
        self._next = dict.fromkeys(ir.cores, 0)
        self._head = 0  # of the queue
        self._in_flight: list[tuple[Send, Array, set[int]]] = []  # pieces on their way, and the cores that lack them
        self._landed: set[tuple[int, int]] = set()  # core, transfer
        for name, array in values.inputs.items():
            self.dram.fill(name, array)
        computed = {work.layer_name for work in ir.workloads()}
        for name, layer in values.network.layers.items():
            if name in values.outputs and name not in computed:
                self.dram.fill(name, values.outputs[name])  # a slice begins with what layers before it have stored
            elif name in values.outputs:
                self.dram.make(name, layer.output_shape, DTYPES[layer.output_dtype])

    # ---------------------------------------------------------------------------------------------- order
    def run_to_end(self) -> None:
        """Run until everything is done or nothing can go on, and note what is left."""
        while self._run_transfer() or self._deliver_piece() or self._run_next_workload():
            pass
        left = [works[self._next[core]] for core, works in self.ir.cores.items() if self._next[core] < len(works)]
        for work in left:
            self._note(work, f"stopped: it waits for {self._describe_wait(work)}")
        if not left and self._head < len(self.plan.queue):
            self.mismatches.append(Mismatch(None, None, "", f"stopped: {self.plan.queue[self._head]} cannot begin"))

    def _have_ended(self, steps: Sequence[Step]) -> bool:
        """Return whether all these workloads, each a core and a position on it, have been computed."""
        return all(self._next[core] > at for core, at in steps)

    def _run_transfer(self) -> bool:
        """Run the next transfer of the DRAM queue if it can begin, and return whether it could. A Fault is recorded as
        a mismatch."""
        if self._head == len(self.plan.queue):
            return False
        transfer = self.plan.queue[self._head]
        stored = all(place < self._head for number in transfer.stores for place in self.plan.stored.get(number, ()))
        if transfer.never or not stored or not self._have_ended(transfer.after):
            return False
        self._head += 1
        try:
            if transfer.kind == "store":
                self._store(transfer)
            elif transfer.tensor_id is not None:
                self._load(transfer)
        except Fault as fault:
            work = self._snapshot(transfer.core, transfer.gate)
            self.mismatches.append(Mismatch(transfer.core, work.workload_id, work.layer_name, f"{transfer}: {fault}"))
        return True

    def _deliver_piece(self) -> bool:
        """Deliver one piece to a core that has room for it, and return whether there was one."""
        for send, array, cores in self._in_flight:
            for core in sorted(cores):
                first = send.shown.get(core)
                if first is not None and self._next[core] >= first:
                    cores.discard(core)
                    self._landed.add((core, send.transfer_id))
                    at = min(self._next[core], len(self.ir.cores[core]) - 1)
                    work = self._snapshot(
                        core, at if tensors_holding(self._snapshot(core, at), send.transfer_id) else first
                    )
                    try:
                        for tensor, source in tensors_holding(work, send.transfer_id):
                            self.l2[core].write_map(work.regions, tensor, source.box, array)
                    except Fault as fault:
                        self._note(work, f"transfer {send.transfer_id} arrives: {fault}")
                    return True
        return False

    def _run_next_workload(self) -> bool:
        """Run the next workload of the first core that need not wait, and return whether there was one."""
        for core, works in self.ir.cores.items():
            at = self._next[core]
            if at < len(works) and not self._describe_wait(works[at]):
                self._next[core] += 1
                self._compute_workload(works[at])
                return True
        return False

    def _describe_wait(self, work: Workload) -> str:
        """Return what a workload waits for, or "" when it can run."""
        needs = self.plan.needs[work.core, work.index]
        for place in (*needs.items, *needs.rooms, *needs.late):
            if place >= self._head:
                after = self.plan.queue[self._head]
                return f"{self.plan.queue[place]}" + (f", after {after}" if place > self._head else "")
        for number in needs.pieces:
            if (work.core, number) not in self._landed:
                return f"transfer {number} of another core"
        return ""

    def _snapshot(self, core: int, at: int) -> Workload:
        """Return the workload at position `at` of a core, whose buffer entries show the core's L2 at that time."""
        return self.ir.cores[core][at]

    def _note(self, work: Workload, message: str) -> None:
        """Record a mismatch of a workload."""
        self.mismatches.append(Mismatch(work.core, work.workload_id, work.layer_name, message))

    # ---------------------------------------------------------------------------------------------- DRAM
    def _load(self, transfer: DramTransfer) -> None:
        """Move a tensor or a weight from DRAM into the L2 of its core. Raises Fault for what DRAM does not hold, and
        for a place that does not fit."""
        life = self.index.lives[transfer.core, transfer.tensor_id or 0]
        regions = self._snapshot(transfer.core, transfer.gate).regions
        out = self.index.outs[transfer.transfer_id]
        if out.type == "weight":
            self.l2[transfer.core].write_weight(regions, life.first, self._weight_image(out))
            return
        source = next(candidate for candidate in life.first.source if candidate.transfer_id == transfer.transfer_id)
        array = self.dram.read(source.layer_name or "", out.box)
        self.l2[transfer.core].write_map(regions, life.first, source.box, array)

    def _weight_image(self, out: DramOut) -> NDArray[np.uint8]:
        """Return the bytes of a weight in DRAM. The weight belongs to the layer that its destinations name, else to the
        layer of its readers. Raises Fault where no such layer has weights."""
        names = [to.layer_name for to in out.destination] + [
            work.layer_name for work in self.index.readers.get(out.transfer_id, ())
        ]
        layer = next((name for name in names if name is not None and name in self.values.weights), None)
        if layer is None:
            raise Fault(f"weight {out.transfer_id} belongs to no layer that has weights")
        return weight_image(self.values.weights[layer], out.box)

    def _store(self, transfer: DramTransfer) -> None:
        """Move a result from the L2 of its core into DRAM. Raises Fault for a tensor that the snapshot does not show or
        that was not written whole, and for a box that DRAM does not have."""
        output = self.index.output_by_room[transfer.core, transfer.tensor_id or 0]
        work = self._snapshot(transfer.core, transfer.gate)
        tensor = next((candidate for candidate in work.buffer if candidate.tensor_id == transfer.tensor_id), None)
        if tensor is None:
            raise Fault(f"tensor {transfer.tensor_id} is not in the snapshot of {work}")
        array = self.l2[transfer.core].read_map(work.regions, tensor, tensor.box)
        box = output.piece.box.shift(output.work.box.lower)
        self.dram.write(output.work.layer_name, box, array)

    # ---------------------------------------------------------------------------------------------- compute
    def _compute_workload(self, work: Workload) -> None:
        """Compute a workload, compare its result with the un-tiled run, and send its pieces on their way to other
        cores. Faults are recorded as mismatches."""
        layer = self.values.network.layers.get(work.layer_name)
        if layer is None or layer.name not in self.values.operators:
            self._note(work, NO_SUCH_LAYER)
            return
        result = np.zeros(work.box.shape, self.values.operators[layer.name].dtype)
        try:
            self._compute_tiles(work, layer, result)
        except Fault as fault:
            self._note(work, str(fault))
        else:
            self._compare(work, layer, result)
        for send in self.plan.sends:
            if send.step == (work.core, work.index):
                piece = next(candidate for candidate in work.ofmap if candidate.transfer_id == send.transfer_id)
                if piece.box.inside(work.box.within(work.box)):
                    self._in_flight.append((send, result[piece.box.slices()], set(send.cores)))

    def _compare(self, work: Workload, layer: Layer, result: Array) -> None:
        """Record a mismatch where the result of a workload differs from the un-tiled run."""
        if not work.box.inside(layer.box):
            self._note(work, f"computes {work.box}, the layer has {list(layer.output_shape)}")
            return
        expected = self.values.outputs[layer.name][work.box.slices()]
        differs = int((result != expected).sum())
        if differs:
            self._note(work, f"{differs} of {result.size} elements differ from the un-tiled run")

    def _compute_tiles(self, work: Workload, layer: Layer, result: Array) -> None:
        """Compute a workload tile by tile, into `result` and into the core's own L2. Raises Fault for an access
        that the hardware would get wrong."""
        if layer.name in self.values.weights:
            weights = self._find_weights(work)
        else:
            weights = None
        operands = self._find_operands(work, layer)
        places = self._result_places(work)
        for tile in work.tiles:
            tile_box = tile.ofmap.within(work.box)
            if not tile_box.inside(work.box.within(work.box)):
                raise Fault(f"a tile makes {tile.ofmap}, beyond the workload")
            if not all(0 <= rows < max(layer.window) for rows in tile.padding):
                raise Fault(f"a tile has padding {list(tile.padding)} for a window of {list(layer.window)}")
            inputs = [self._read_operand(work, ifmap, tensor, tile, second) for ifmap, tensor, second in operands]
            array = self._compute_tile(work, layer, tile, inputs, weights)
            result[tile_box.slices()] = array
            for piece, tensor, corner in places:
                common = tile_box.common(piece)
                if common is not None:
                    target = common.within(piece).shift(corner)
                    inner = array[common.within(tile_box).slices()]
                    self.l2[work.core].write_map(work.regions, tensor, target, inner)

    def _compute_tile(
        self, work: Workload, layer: Layer, tile: Tile, inputs: Sequence[Array], weights: LaidWeights | None
    ) -> Array:
        """Return the result of one tile. Raises Fault where shapes of operands or of the result do not fit."""
        if len({values.shape for values in inputs}) > 1:
            raise Fault(f"the tile of {tile.ofmap} reads operands of different shapes")
        part = None
        if weights is not None and work.weight is not None:
            part = _select_channels(weights, tile, work.weight.box)
        array = self.values.operators[layer.name].run(inputs, tile.padding, part)
        if array.shape != tile.ofmap.shape:
            raise Fault(f"the tile of {tile.ofmap} has shape {list(array.shape)}, it needs {list(tile.ofmap.shape)}")
        return array

    def _result_places(self, work: Workload) -> list[tuple[Box, Tensor, Sequence[int]]]:
        """Return where the results of a workload go in its core's own L2: the piece of the workload, the tensor, and
        the piece's corner in it (facts GEMINI 2.3)."""
        places: list[tuple[Box, Tensor, Sequence[int]]] = []
        for piece in work.ofmap:
            for tensor, source in tensors_holding(work, piece.transfer_id):
                places.append((piece.box, tensor, source.box.lower))
            _core, room = self.index.room_of_output.get(piece.transfer_id, (work.core, None))
            for tensor in work.buffer:
                if tensor.type == "ofmap" and tensor.tensor_id == room:
                    places.append((piece.box, tensor, tensor.box.lower))
        return places

    def _find_operands(self, work: Workload, layer: Layer) -> list[tuple[Ifmap, Tensor, bool]]:
        """Return record, tensor and whether it is a second one for each operand, in the order of the layer's
        operands, matched by the names of the sources' layers (facts GEMINI 2.2). Raises Fault for an operand that
        is not read."""
        left: list[tuple[set[str], Ifmap, Tensor, bool]] = []
        for number, ifmap in enumerate(work.ifmap):
            tensor = find_read_tensor(work, ifmap)
            if tensor is None:
                raise Fault(f"no tensor holds the operand with transfers {list(ifmap.transfer_id)}")
            ids = set(ifmap.transfer_id)
            names = {source.layer_name or "" for source in tensor.source if source.transfer_id in ids}
            left.append((names, ifmap, tensor, number > 0))
        ordered: list[tuple[Ifmap, Tensor, bool]] = []
        for name in self.values.network.operands(layer):
            fits = [entry for entry in left if name in entry[0]]
            if not fits:
                raise Fault(f"operand {name!r} is not read")
            if len(left) > 1:  # the last operand may stand for several of the layer's
                left = [entry for entry in left if entry is not fits[0]]
            ordered.append(fits[0][1:])
        return ordered

    def _read_operand(self, work: Workload, ifmap: Ifmap, tensor: Tensor, tile: Tile, second: bool) -> Array:
        """Return the values that a tile reads of an operand; `second` for any operand after the first. The tile's
        range counts from the smallest range of the workload's tiles and starts where the operand begins."""
        boxes = [other.ifmap2 if second and other.ifmap2 else other.ifmap for other in work.tiles]
        if second and tile.ifmap2:
            tile_range = tile.ifmap2
        else:
            tile_range = tile.ifmap
        origin = hull(boxes).lower
        box = tile_range.within(Box(origin, origin)).shift(ifmap.box.lower)
        return self.l2[work.core].read_map(work.regions, tensor, box)

    def _find_weights(self, work: Workload) -> LaidWeights:
        """Return a workload's weights from a DDR entry of its own snapshot, else from L2 (facts GEMINI 2.5). Raises
        Fault where there are none, or of another size."""
        if work.weight is None or not work.weight.transfer_id:
            raise Fault("it has no weight")
        number = work.weight.transfer_id[0]
        image = self._weight_bytes(work, number)
        _, count, channels, taps = work.weight.box.shape
        if image.size % count or (image.size // count - EXTRA) % taps:
            raise Fault(f"weight {number} has {image.size} bytes, not those of {work.weight.box}")
        rows = image.reshape(count, -1)
        body = np.ascontiguousarray(rows[:, :-EXTRA]).view(np.int8).reshape(count, taps, -1)[:, :, :channels]
        scale = np.ascontiguousarray(rows[:, -EXTRA : 4 - EXTRA]).view(np.float32).reshape(count)
        bias = np.ascontiguousarray(rows[:, 4 - EXTRA : 8 - EXTRA]).view(np.float32).reshape(count)
        return LaidWeights(body, scale, bias)

    def _weight_bytes(self, work: Workload, number: int) -> NDArray[np.uint8]:
        """Return the bytes of weight `number`, which a workload uses, from DRAM or L2. Raises Fault where it is in
        neither."""
        direct = any(store.source == "DDR" and number in store.transfer_id for store in work.wl0)
        if direct and number in self.index.outs:
            return self._weight_image(self.index.outs[number])
        for tensor in work.buffer:
            if tensor.type == "weight" and number in tensor.transfer_id:
                return self.l2[work.core].read_weight(work.regions, tensor)
        raise Fault(f"weight {number} is not there")

    # ---------------------------------------------------------------------------------------------- outputs
    def outputs(self) -> dict[str, Array]:
        """Return the network's outputs: results that arrive in DRAM and that nothing reads there. Notes a mismatch for
        each that differs from the un-tiled run."""
        outputs: dict[str, Array] = {}
        for entry in self.ir.dram_in:
            name = entry.layer_name or ""
            if entry.related_ofmap or name not in self.values.outputs:
                continue
            outputs[name] = self.dram.values[name]
            try:
                differs = self.dram.read(name, entry.box) != self.values.outputs[name][entry.box.slices()]
                if differs.any():
                    why = f"{int(differs.sum())} elements of the output differ"
                else:
                    why = ""
            except Fault as fault:
                why = f"output: {fault}"
            if why:
                self.mismatches.append(Mismatch(entry.core_id, None, name, why))
        return outputs


def _select_channels(weights: LaidWeights, tile: Tile, box: Box) -> LaidWeights:
    """Return the weights of a tile's output channels; `box` is that of the workload's weights. Raises Fault for
    channels that these do not have."""
    low = tile.ofmap.lower[1] - box.lower[1]
    high = tile.ofmap.upper[1] - box.lower[1] + 1
    if low < 0 or high > len(weights.values):
        raise Fault(f"a tile makes channels {tile.ofmap.lower[1]} to {tile.ofmap.upper[1]}, the weight is {box}")
    return LaidWeights(weights.values[low:high], weights.scale[low:high], weights.bias[low:high])
