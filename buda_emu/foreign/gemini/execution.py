"""Bytes: run a schedule on L2s and a DRAM, and compare with the network computed at once (facts GEMINI 6)."""

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
from buda_emu.foreign.gemini.index import Index, holding, read_tensor
from buda_emu.foreign.gemini.model import IR, DramOut, Ifmap, Region, Tensor, Tile, Workload
from buda_emu.foreign.gemini.rings import pieces, region_of
from buda_emu.foreign.gemini.sizes import CHANNELS, EXTRA, aligned, fmap_bytes, padded, weight_bytes
from buda_emu.foreign.gemini.time.plan import Item, Send, Step, make_plan
from buda_emu.support.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a run differs from the network: `workload_id` is None for an output of the network, or a stop."""

    core: int | None
    workload_id: int | None
    layer: str
    message: str

    def __str__(self) -> str:
        where = "" if self.core is None else f"core {self.core} "
        where += "" if self.workload_id is None else f"workload {self.workload_id} "
        return f"{where}({self.layer}): {self.message}" if self.layer else f"{where}{self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """`outputs`: network outputs by layer, N C H W in their own type; `digests`: SHA-256 of their bytes in C order.
    `seeded`: layers whose weights were made from the seed, none being published."""

    mismatches: Sequence[Mismatch]
    outputs: "Mapping[str, NDArray[Any]]"
    seeded: Sequence[str]

    @property
    def ok(self) -> bool:
        """Every workload and every output has the bits of the un-tiled run."""
        return not self.mismatches

    @property
    def digests(self) -> dict[str, str]:
        """Of each output."""
        return {name: sha256(values.tobytes()).hexdigest() for name, values in self.outputs.items()}


def execute(
    ir: "IR",
    frontend: "str | os.PathLike[str] | Mapping[str, Any]",
    *,
    seed: int = 0,
    weights: "Mapping[str, Weights] | None" = None,
) -> Execution:
    """Run a schedule of dialect A on real bytes, and compare every workload with the un-tiled run.

    `frontend`: path or decoded object of the network. Weights that are not given as {layer: (int8 [K, C, R, S], scale
    [K], bias [K])} are made from the seed, and so are inputs. What goes wrong in the schedule is in `.mismatches`.
    Raises UnsupportedError for constructs that are not emulated (by name, dialect B among them), ScheduleError for a
    network that cannot be computed, ProgramError for a schedule that cannot be followed at all.
    """
    return replay(ir, frontend, seed, weights)


_MOST = 1 << 34  # bytes of an L2 that is emulated
_BITS: Final = {8: np.int8, 16: np.float16}


class Fault(Exception):  # noqa: N818 - of the emulated hardware, not of a caller
    """Something that the hardware would do wrong: told as a mismatch."""


class L2:
    """Bytes of one core. Feature maps lie N H W C, channels padded; a tensor wraps within its ring region."""

    def __init__(self, size: int) -> None:
        if size > _MOST:
            raise UnsupportedError(f"an L2 of {size} bytes is more than the {_MOST} that are emulated")
        self._bytes = np.zeros(size, np.uint8)
        self._written = np.zeros(size, np.bool_)

    def read_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box) -> NDArray[Any]:
        """A box of a tensor, in the tensor's own coordinates, as N C H W. Raises Fault for unwritten bytes."""
        where = self._where(regions, tensor)
        if not box.inside(tensor.box):
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, which is {tensor.box}")
        part = _nhwc(box.within(tensor.box))
        values = _shaped(_joined(self._bytes, where), tensor)[part]
        written = _shaped(_joined(self._written, where), tensor)[part]
        if not written.all():
            count = written.size - int(written.sum())
            raise Fault(f"{box} of tensor {tensor.tensor_id} is read, but {count} bytes of it were never written")
        return values.transpose(0, 3, 1, 2)

    def write_map(self, regions: Sequence[Region] | None, tensor: Tensor, box: Box, values: NDArray[Any]) -> None:
        """Write N C H W values to a box. A box that reaches the last channel takes the padding after it, as 0."""
        where = self._where(regions, tensor)
        if not box.inside(tensor.box) or box.shape != values.shape:
            raise Fault(f"{list(values.shape)} values are written to {box} of tensor {tensor.tensor_id}, {tensor.box}")
        if values.dtype != _BITS[tensor.bitwidth]:
            raise Fault(f"{values.dtype} values are written to tensor {tensor.tensor_id} of {tensor.bitwidth} bits")
        part = _nhwc(box.within(tensor.box))
        content = _joined(self._bytes, where)
        written = _joined(self._written, where)
        _shaped(content, tensor)[part] = values.transpose(0, 2, 3, 1)
        _shaped(written, tensor)[part] = True
        if box.upper[1] == tensor.box.upper[1]:
            behind = (part[0], part[1], part[2], slice(tensor.box.shape[1], None))
            _shaped(content, tensor)[behind] = 0
            _shaped(written, tensor)[behind] = True
        if len(where) > 1:  # copies were changed
            _spread(self._bytes, where, content)
            _spread(self._written, where, written)

    def read_weight(self, regions: Sequence[Region] | None, tensor: Tensor) -> NDArray[np.uint8]:
        """The bytes of a weight. Raises Fault for unwritten ones."""
        where = self._where(regions, tensor)
        if not _joined(self._written, where).all():
            raise Fault(f"weight tensor {tensor.tensor_id} is read before it is written")
        return _joined(self._bytes, where)

    def write_weight(self, regions: Sequence[Region] | None, tensor: Tensor, content: NDArray[np.uint8]) -> None:
        """All bytes of a weight."""
        where = self._where(regions, tensor)
        if content.size != weight_bytes(tensor.box):
            raise Fault(f"{content.size} bytes of weights are written to tensor {tensor.tensor_id}, {tensor.box}")
        _spread(self._bytes, where, content)
        _spread(self._written, where, np.ones(content.size, np.bool_))

    def _where(self, regions: Sequence[Region] | None, tensor: Tensor) -> list[Region]:
        """The bytes of a tensor."""
        if tensor.bitwidth not in _BITS:
            raise Fault(f"tensor {tensor.tensor_id} has {tensor.bitwidth} bits")
        weight = tensor.type == "weight"
        size = weight_bytes(tensor.box) if weight else fmap_bytes(tensor.box, tensor.bitwidth)
        region = region_of(regions or (), tensor.address)
        if region is None:
            raise Fault(f"tensor {tensor.tensor_id} at {tensor.address} is in no ring region")
        low, high = region
        if low < 0 or high > self._bytes.size or size > high - low:
            raise Fault(f"tensor {tensor.tensor_id} of {size} bytes does not fit the region [{low}, {high}]")
        return pieces(region, tensor.address, size)


def _joined(array: NDArray[Any], where: Sequence[Region]) -> NDArray[Any]:
    """A view of one stretch, a copy of several."""
    stretches = [array[low:high] for low, high in where]
    return stretches[0] if len(stretches) == 1 else np.concatenate(stretches)


def _spread(array: NDArray[Any], where: Sequence[Region], content: NDArray[Any]) -> None:
    at = 0
    for low, high in where:
        array[low:high] = content[at : at + high - low]
        at += high - low


def _shaped(content: NDArray[Any], tensor: Tensor) -> NDArray[Any]:
    """Bytes as elements [N, H, W, padded C]; flags of bytes as [N, H, W, padded C, bytes of an element]."""
    n, c, h, w = tensor.box.shape
    channels = padded(c, aligned(tensor.bitwidth))
    if content.dtype == np.bool_:
        return content.reshape(n, h, w, channels, tensor.bitwidth // 8)
    return content.view(_BITS[tensor.bitwidth]).reshape(n, h, w, channels)


def _nhwc(box: Box) -> tuple[slice, slice, slice, slice]:
    n, c, h, w = box.slices()
    return n, h, w, c


def weight_image(weights: Weights, box: Box) -> NDArray[np.uint8]:
    """The bytes of a part of a layer's weights, box [0, K, C, R*S]: for each K the values [R*S][padded C], a float32
    scale, a float32 bias, 24 zeros."""
    values, scale, bias = weights
    k, c, r, s = values.shape
    if box.upper[1] >= k or box.upper[2] >= c or box.upper[3] >= r * s:
        raise Fault(f"weights {box} are loaded, the layer has {[0, k - 1, c - 1, r * s - 1]}")
    _, ks, cs, taps = box.slices()
    part = values.reshape(k, c, r * s)[ks, cs, taps]
    count, channels, window = part.shape
    image = np.zeros((count, window * padded(channels, CHANNELS) + EXTRA), np.uint8)
    body = image[:, :-EXTRA].view(np.int8).reshape(count, window, -1)
    body[:, :, :channels] = part.transpose(0, 2, 1)
    image[:, -EXTRA : 4 - EXTRA] = np.ascontiguousarray(scale[ks]).view(np.uint8).reshape(-1, 4)
    image[:, 4 - EXTRA : 8 - EXTRA] = np.ascontiguousarray(bias[ks]).view(np.uint8).reshape(-1, 4)
    return image.reshape(-1)


class Dram:
    """Outputs of layers, each an array N C H W in its own type."""

    def __init__(self) -> None:
        self.values: dict[str, NDArray[Any]] = {}
        self._written: dict[str, NDArray[np.bool_]] = {}

    def make(self, layer: str, shape: Coordinates, dtype: Any) -> None:
        """Room for a layer's output."""
        self.values[layer] = np.zeros(shape, dtype)
        self._written[layer] = np.zeros(shape, np.bool_)

    def fill(self, layer: str, values: NDArray[Any]) -> None:
        """An input of the network."""
        self.values[layer] = values
        self._written[layer] = np.ones(values.shape, np.bool_)

    def read(self, layer: str, box: Box) -> NDArray[Any]:
        """Raises Fault for what nothing has written."""
        self._check(layer, box)
        if not self._written[layer][box.slices()].all():
            raise Fault(f"{box} of {layer!r} is loaded from DRAM before all of it is stored")
        return self.values[layer][box.slices()]

    def write(self, layer: str, box: Box, values: NDArray[Any]) -> None:
        """Store a box."""
        self._check(layer, box)
        if values.shape != box.shape or values.dtype != self.values[layer].dtype:
            raise Fault(f"{list(values.shape)} {values.dtype} values are stored as {box} of {layer!r}")
        self.values[layer][box.slices()] = values
        self._written[layer][box.slices()] = True

    def _check(self, layer: str, box: Box) -> None:
        if layer not in self.values:
            raise Fault(f"DRAM has no {layer!r}")
        shape = self.values[layer].shape
        if any(high >= extent for high, extent in zip(box.upper, shape, strict=True)):
            raise Fault(f"{box} of {layer!r} in DRAM, which has {list(shape)}")


Array = NDArray[Any]


def replay(ir: IR, frontend: Any, seed: int, weights: "Mapping[str, Weights] | None") -> Execution:
    """As `execute`."""
    if not ir.form.addressed:
        raise UnsupportedError(
            "execution of a schedule without addresses (dialect B): `alloc` makes one with addresses"
        )
    network = read_network(frontend)
    wanted = {work.layer_name for work in ir.workloads()}
    values = Values(network, wanted & set(network.layers), seed, weights)
    run = _Run(ir, values)
    run.everything()
    given = set(weights or ())
    return Execution(tuple(run.wrong), run.outputs(), tuple(name for name in values.weights if name not in given))


class _Run:
    def __init__(self, ir: IR, values: Values) -> None:
        self.ir = ir
        self.index = Index(ir)
        self.plan = make_plan(self.index)
        self.values = values
        size = ir.buffersize or 0
        self.l2 = {core: L2(size) for core in ir.cores}
        self.dram = Dram()
        self.wrong: list[Mismatch] = []
        self._next = dict.fromkeys(ir.cores, 0)
        self._head = 0  # of the queue
        self._flying: list[tuple[Send, Array, set[int]]] = []  # pieces on their way, and the cores that lack them
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
    def everything(self) -> None:
        """Until all is done, or nothing can go on."""
        while self._queue() or self._land() or self._work():
            pass
        left = [works[self._next[core]] for core, works in self.ir.cores.items() if self._next[core] < len(works)]
        for work in left:
            self._note(work, f"stopped: it waits for {self._lacking(work)}")
        if not left and self._head < len(self.plan.queue):
            self.wrong.append(Mismatch(None, None, "", f"stopped: {self.plan.queue[self._head]} cannot begin"))

    def _done(self, steps: Sequence[Step]) -> bool:
        return all(self._next[core] > at for core, at in steps)

    def _queue(self) -> bool:
        """The next item of the DRAM queue, if its gate allows."""
        if self._head == len(self.plan.queue):
            return False
        item = self.plan.queue[self._head]
        stored = all(place < self._head for number in item.stores for place in self.plan.stored.get(number, ()))
        if item.never or not stored or not self._done(item.after):
            return False
        self._head += 1
        try:
            if item.kind == "store":
                self._store(item)
            elif item.tensor_id is not None:
                self._load(item)
        except Fault as fault:
            work = self._shown(item.core, item.gate)
            self.wrong.append(Mismatch(item.core, work.workload_id, work.layer_name, f"{item}: {fault}"))
        return True

    def _land(self) -> bool:
        """A piece that another core has room for."""
        for send, array, cores in self._flying:
            for core in sorted(cores):
                first = send.shown.get(core)
                if first is not None and self._next[core] >= first:
                    cores.discard(core)
                    self._landed.add((core, send.transfer_id))
                    at = min(self._next[core], len(self.ir.cores[core]) - 1)
                    work = self._shown(core, at if holding(self._shown(core, at), send.transfer_id) else first)
                    try:
                        for tensor, source in holding(work, send.transfer_id):
                            self.l2[core].write_map(work.regions, tensor, source.box, array)
                    except Fault as fault:
                        self._note(work, f"transfer {send.transfer_id} arrives: {fault}")
                    return True
        return False

    def _work(self) -> bool:
        """The next workload of the first core that can go on."""
        for core, works in self.ir.cores.items():
            at = self._next[core]
            if at < len(works) and not self._lacking(works[at]):
                self._next[core] += 1
                self._run(works[at])
                return True
        return False

    def _lacking(self, work: Workload) -> str:
        """What a workload waits for, "" when it can run."""
        needs = self.plan.needs[work.core, work.index]
        for place in (*needs.items, *needs.rooms, *needs.late):
            if place >= self._head:
                after = self.plan.queue[self._head]
                return f"{self.plan.queue[place]}" + (f", after {after}" if place > self._head else "")
        for number in needs.pieces:
            if (work.core, number) not in self._landed:
                return f"transfer {number} of another core"
        return ""

    def _shown(self, core: int, at: int) -> Workload:
        return self.ir.cores[core][at]

    def _note(self, work: Workload, message: str) -> None:
        self.wrong.append(Mismatch(work.core, work.workload_id, work.layer_name, message))

    # ---------------------------------------------------------------------------------------------- DRAM
    def _load(self, item: Item) -> None:
        life = self.index.lives[item.core, item.tensor_id or 0]
        regions = self._shown(item.core, item.gate).regions
        out = self.index.outs[item.transfer_id]
        if out.type == "weight":
            self.l2[item.core].write_weight(regions, life.first, self._image(out))
            return
        source = next(one for one in life.first.source if one.transfer_id == item.transfer_id)
        array = self.dram.read(source.layer_name or "", out.box)
        self.l2[item.core].write_map(regions, life.first, source.box, array)

    def _image(self, out: DramOut) -> NDArray[np.uint8]:
        """Bytes of a weight in DRAM: of the layer that its destinations name, else of its readers'."""
        names = [to.layer_name for to in out.destination] + [
            work.layer_name for work in self.index.readers.get(out.transfer_id, ())
        ]
        layer = next((name for name in names if name is not None and name in self.values.weights), None)
        if layer is None:
            raise Fault(f"weight {out.transfer_id} belongs to no layer that has weights")
        return weight_image(self.values.weights[layer], out.box)

    def _store(self, item: Item) -> None:
        made = self.index.rooms[item.core, item.tensor_id or 0]
        work = self._shown(item.core, item.gate)
        tensor = next((one for one in work.buffer if one.tensor_id == item.tensor_id), None)
        if tensor is None:
            raise Fault(f"tensor {item.tensor_id} is not in the snapshot of {work}")
        array = self.l2[item.core].read_map(work.regions, tensor, tensor.box)
        box = made.piece.box.moved(made.work.box.lower)
        self.dram.write(made.work.layer_name, box, array)

    # ---------------------------------------------------------------------------------------------- compute
    def _run(self, work: Workload) -> None:
        layer = self.values.network.layers.get(work.layer_name)
        if layer is None or layer.name not in self.values.operators:
            self._note(work, "the network has no such layer")
            return
        result = np.zeros(work.box.shape, self.values.operators[layer.name].dtype)
        try:
            self._tiles(work, layer, result)
        except Fault as fault:
            self._note(work, str(fault))
        else:
            self._compare(work, layer, result)
        for send in self.plan.sends:
            if send.step == (work.core, work.index):
                piece = next(one for one in work.ofmap if one.transfer_id == send.transfer_id)
                if piece.box.inside(work.box.within(work.box)):
                    self._flying.append((send, result[piece.box.slices()], set(send.cores)))

    def _compare(self, work: Workload, layer: Layer, result: Array) -> None:
        if not work.box.inside(layer.box):
            self._note(work, f"computes {work.box}, the layer has {list(layer.output_shape)}")
            return
        wanted = self.values.outputs[layer.name][work.box.slices()]
        differs = int((result != wanted).sum())
        if differs:
            self._note(work, f"{differs} of {result.size} elements differ from the un-tiled run")

    def _tiles(self, work: Workload, layer: Layer, result: Array) -> None:
        weights = self._weights(work) if layer.name in self.values.weights else None
        operands = self._operands(work, layer)
        places = self._places(work)
        begin = work.box.lower
        for tile in work.tiles:
            own = tile.ofmap.within(Box(begin, begin))
            if not own.inside(work.box.within(work.box)):
                raise Fault(f"a tile makes {tile.ofmap}, beyond the workload")
            if not all(0 <= one < max(layer.window) for one in tile.padding):
                raise Fault(f"a tile has padding {list(tile.padding)} for a window of {list(layer.window)}")
            read = [self._operand(work, item, tensor, tile, second) for item, tensor, second in operands]
            if len({one.shape for one in read}) > 1:
                raise Fault(f"the tile of {tile.ofmap} reads operands of different shapes")
            part = None if weights is None or work.weight is None else _channels(weights, tile, work.weight.box)
            array = self.values.operators[layer.name].run(read, tile.padding, part)
            if array.shape != tile.ofmap.shape:
                raise Fault(
                    f"the tile of {tile.ofmap} has shape {list(array.shape)}, it needs {list(tile.ofmap.shape)}"
                )
            result[own.slices()] = array
            for piece, tensor, corner in places:
                common = own.common(piece)
                if common is not None:
                    target = common.within(piece).moved(corner)
                    inner = array[common.within(own).slices()]
                    self.l2[work.core].write_map(work.regions, tensor, target, inner)

    def _places(self, work: Workload) -> list[tuple[Box, Tensor, Sequence[int]]]:
        """Where results go in the core's own L2: piece of the workload, tensor, corner there (facts GEMINI 2.3)."""
        found: list[tuple[Box, Tensor, Sequence[int]]] = []
        for piece in work.ofmap:
            for tensor, source in holding(work, piece.transfer_id):
                found.append((piece.box, tensor, source.box.lower))
            _core, room = self.index.stored_in.get(piece.transfer_id, (work.core, None))
            for tensor in work.buffer:
                if tensor.type == "ofmap" and tensor.tensor_id == room:
                    found.append((piece.box, tensor, tensor.box.lower))
        return found

    def _operands(self, work: Workload, layer: Layer) -> list[tuple[Ifmap, Tensor, bool]]:
        """In the order of the layer's operands, matched by the names of the sources' layers (facts GEMINI 2.2)."""
        left: list[tuple[set[str], Ifmap, Tensor, bool]] = []
        for number, item in enumerate(work.ifmap):
            tensor = read_tensor(work, item)
            if tensor is None:
                raise Fault(f"no tensor holds the operand with transfers {list(item.transfer_id)}")
            ids = set(item.transfer_id)
            names = {one.layer_name or "" for one in tensor.source if one.transfer_id in ids}
            left.append((names, item, tensor, number > 0))
        found: list[tuple[Ifmap, Tensor, bool]] = []
        for name in self.values.network.operands(layer):
            fits = [entry for entry in left if name in entry[0]]
            if not fits:
                raise Fault(f"operand {name!r} is not read")
            if len(left) > 1 or found == []:
                left = [entry for entry in left if entry is not fits[0]] if len(left) > 1 else left
            found.append(fits[0][1:])
        return found

    def _operand(self, work: Workload, item: Ifmap, tensor: Tensor, tile: Tile, second: bool) -> Array:
        """What a tile reads: its range less the smallest of the workload's tiles, plus where the operand begins."""
        boxes = [one.ifmap2 if second and one.ifmap2 else one.ifmap for one in work.tiles]
        own = tile.ifmap2 if second and tile.ifmap2 else tile.ifmap
        origin = hull(boxes).lower
        box = own.within(Box(origin, origin)).moved(item.box.lower)
        return self.l2[work.core].read_map(work.regions, tensor, box)

    def _weights(self, work: Workload) -> LaidWeights:
        """From a DDR entry of the workload's own snapshot, else from L2 (facts GEMINI 2.5)."""
        if work.weight is None or not work.weight.transfer_id:
            raise Fault("it has no weight")
        number = work.weight.transfer_id[0]
        direct = any(item.source == "DDR" and number in item.transfer_id for item in work.wl0)
        if direct and number in self.index.outs:
            image = self._image(self.index.outs[number])
        else:
            tensor = next((one for one in work.buffer if one.type == "weight" and number in one.transfer_id), None)
            if tensor is None:
                raise Fault(f"weight {number} is not there")
            image = self.l2[work.core].read_weight(work.regions, tensor)
        _, count, channels, taps = work.weight.box.shape
        if image.size % count or (image.size // count - EXTRA) % taps:
            raise Fault(f"weight {number} has {image.size} bytes, not those of {work.weight.box}")
        rows = image.reshape(count, -1)
        body = np.ascontiguousarray(rows[:, :-EXTRA]).view(np.int8).reshape(count, taps, -1)[:, :, :channels]
        scale, bias = (
            np.ascontiguousarray(rows[:, at : at + 4]).view(np.float32).reshape(count)
            for at in (rows.shape[1] - EXTRA, rows.shape[1] - EXTRA + 4)
        )
        return LaidWeights(body, scale, bias)

    # ---------------------------------------------------------------------------------------------- outputs
    def outputs(self) -> dict[str, Array]:
        """Of the network: what arrives in DRAM and is read by nothing there. Notes where they differ."""
        found: dict[str, Array] = {}
        for entry in self.ir.dram_in:
            name = entry.layer_name or ""
            if entry.related_ofmap or name not in self.values.outputs:
                continue
            found[name] = self.dram.values[name]
            try:
                differs = self.dram.read(name, entry.box) != self.values.outputs[name][entry.box.slices()]
                why = f"{int(differs.sum())} elements of the output differ" if differs.any() else ""
            except Fault as fault:
                why = f"output: {fault}"
            if why:
                self.wrong.append(Mismatch(entry.core_id, None, name, why))
        return found


def _channels(weights: LaidWeights, tile: Tile, box: Box) -> LaidWeights:
    """Weights of a tile's output channels."""
    low = tile.ofmap.lower[1] - box.lower[1]
    high = tile.ofmap.upper[1] - box.lower[1] + 1
    if low < 0 or high > len(weights.values):
        raise Fault(f"a tile makes channels {tile.ofmap.lower[1]} to {tile.ofmap.upper[1]}, the weight is {box}")
    return LaidWeights(weights.values[low:high], weights.scale[low:high], weights.bias[low:high])
