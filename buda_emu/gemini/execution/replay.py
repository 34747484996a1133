"""One run: the DRAM queue, workloads and pieces in an order that the schedule allows, bytes moved and computed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.errors import UnsupportedError
from buda_emu.gemini.boxes import Box, hull
from buda_emu.gemini.execution import Execution, Mismatch
from buda_emu.gemini.execution.memory import L2, Dram, Fault, weight_image
from buda_emu.gemini.execution.network import Values
from buda_emu.gemini.execution.operators import DTYPES, LaidWeights
from buda_emu.gemini.execution.seeded import Weights
from buda_emu.gemini.frontend import Layer, read_network
from buda_emu.gemini.index import Index, holding, read_tensor
from buda_emu.gemini.model import IR, DramOut, Ifmap, Tensor, Tile, Workload
from buda_emu.gemini.sizes import EXTRA
from buda_emu.gemini.time.plan import Item, Send, Step, make_plan

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
    low, high = tile.ofmap.lower[1] - box.lower[1], tile.ofmap.upper[1] - box.lower[1] + 1
    if low < 0 or high > len(weights.values):
        raise Fault(f"a tile makes channels {tile.ofmap.lower[1]} to {tile.ofmap.upper[1]}, the weight is {box}")
    return LaidWeights(weights.values[low:high], weights.scale[low:high], weights.bias[low:high])
