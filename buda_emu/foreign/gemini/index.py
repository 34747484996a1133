"""Who makes, reads and holds what in a schedule: looked up once, for rules, time and execution."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from buda_emu.foreign.gemini.model import (
    IR,
    Destination,
    DramIn,
    DramOut,
    Ifmap,
    Ofmap,
    Source,
    Tensor,
    TensorKind,
    Workload,
)
from buda_emu.foreign.gemini.sizes import BITWIDTHS, fmap_bits, fmap_bytes, legal, weight_bytes


@dataclass(frozen=True, slots=True)
class Made:
    """A result of a workload: which piece of which."""

    work: Workload
    piece: Ofmap


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor of a core's L2 under one tensor_id: the snapshots that show it, in order, and what they say."""

    core: int
    tensor_id: int
    at: tuple[int, ...]
    tensors: tuple[Tensor, ...]

    @property
    def first(self) -> Tensor:
        """As it is first shown."""
        return self.tensors[0]


class Index:
    """Of one schedule. Where an id is defined twice the first definition counts."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        self.outs: dict[int, DramOut] = {}
        self.ins: dict[int, DramIn] = {}
        self.made: dict[int, Made] = {}
        self.doubled: dict[int, str] = {}  # ids that are defined twice, and where the second time
        self.by_id: dict[tuple[int, int], Workload] = {}
        self.readers: dict[int, list[Workload]] = {}
        for out in ir.dram_out:
            self._define(out.transfer_id, f"{out.place}/transfer_id")
            self.outs.setdefault(out.transfer_id, out)
        for work in ir.workloads():
            self.by_id.setdefault((work.core, work.workload_id), work)
            for piece in work.ofmap:
                self._define(piece.transfer_id, f"{piece.place}/transfer_id")
                self.made.setdefault(piece.transfer_id, Made(work, piece))
            for number in work.reads:
                self.readers.setdefault(number, []).append(work)
        for entry in ir.dram_in:
            if entry.transfer_id in self.ins:
                self.doubled.setdefault(entry.transfer_id, f"{entry.place}/transfer_id")
            self.ins.setdefault(entry.transfer_id, entry)

    def _define(self, number: int, place: str) -> None:
        if number in self.outs or number in self.made:
            self.doubled.setdefault(number, place)

    def maker(self, number: int) -> "DramOut | Made | None":
        """What a transfer comes from: DRAM, a workload, or nothing."""
        return self.outs.get(number) or self.made.get(number)

    @cached_property
    def disordered(self) -> frozenset[int]:
        """Cores whose workload ids do not tell their workloads apart (G005)."""
        found: set[int] = set()
        seen: dict[int, int] = {}
        for core, works in self.ir.cores.items():
            if any(a.workload_id >= b.workload_id for a, b in pairwise(works)):
                found.add(core)
            for work in works if self.ir.form.global_ids else ():
                if seen.setdefault(work.workload_id, core) != core:
                    found |= {core, seen[work.workload_id]}
        return frozenset(found)

    def destinations(self) -> Iterator[tuple[int, "DramOut | Made", Destination]]:
        """Of every transfer: id, maker, who it is for."""
        for out in self.ir.dram_out:
            for to in out.destination:
                yield out.transfer_id, out, to
        for work in self.ir.workloads():
            for piece in work.ofmap:
                for to in piece.destination:
                    yield piece.transfer_id, Made(work, piece), to

    def target(self, to: Destination) -> Workload | None:
        """The workload that a destination names."""
        return None if to.workload_id is None else self.by_id.get((to.core_id, to.workload_id))

    @cached_property
    def misled(self) -> frozenset[int]:
        """Ids one of whose destinations does not exist (G004, G015)."""
        return frozenset(
            number for number, _, to in self.destinations() if to.type == "core" and self.target(to) is None
        )

    @cached_property
    def unmade(self) -> frozenset[int]:
        """Ids that are read and that nothing makes (G016)."""
        return frozenset(number for number in self.readers if self.maker(number) is None)

    @cached_property
    def barren(self) -> frozenset[int]:
        """Ids that nothing makes, and that their sources say to come from a workload that makes nothing (G038)."""
        empty = {(work.core, work.layer_name) for work in self.ir.workloads() if not work.ofmap}
        return frozenset(
            source.transfer_id
            for work in self.ir.workloads()
            if empty
            for tensor in work.buffer
            for source in tensor.source
            if source.type == "core"
            and (source.core_id, source.layer_name) in empty
            and self.maker(source.transfer_id) is None
        )

    def lost(self, work: Workload) -> bool:
        """It reads something that nothing makes, or a weight as an operand or the reverse (G016)."""
        return (work.core, work.index) in self._lost

    @cached_property
    def _lost(self) -> frozenset[tuple[int, int]]:
        found: set[tuple[int, int]] = set()
        for work in self.ir.workloads():
            operands = {number for item in work.ifmap for number in item.transfer_id}
            for number in work.reads:
                out = self.outs.get(number)
                is_weight = out is not None and out.type == "weight"
                mixed = number not in self.doubled and is_weight == (number in operands)
                if number in self.unmade or (mixed and not self.ir.form.activations_as_weights):
                    found.add((work.core, work.index))
        return frozenset(found)

    @cached_property
    def misread(self) -> frozenset[tuple[int, int]]:
        """Workloads (core, position) an operand of which is in no tensor, or not the sources that it reaches (A, G044),
        or other ids than its buffer entry (B, G036)."""
        found: set[tuple[int, int]] = set()
        for work in self.ir.workloads():
            if self.ir.form.joint_operands:
                held = {number for entry in own_entries(work) for number in entry.transfer_id}
                if held and any(set(item.transfer_id) != held for item in work.ifmap):
                    found.add((work.core, work.index))
                continue
            flagged = sum(tensor.cur_wl_ifmap for tensor in work.buffer)
            if flagged > len(work.ifmap):
                found.add((work.core, work.index))
            for item in work.ifmap:
                tensor = read_tensor(work, item)
                if tensor is None or touched(tensor, item) != set(item.transfer_id):
                    found.add((work.core, work.index))
        return frozenset(found)

    def sound(self, number: int) -> bool:
        """The record of what makes a transfer agrees with itself: a piece lies in its workload, a size is that of its
        box. Where not, G031, G032 and G038 tell, and nothing else is concluded from it."""
        made = self.made.get(number)
        out = self.outs.get(number)
        in_bits = self.ir.form.in_bits
        if out is not None and out.type == "weight":
            return out.size % (8 * out.box.shape[1]) == 0 if in_bits else out.size == weight_bytes(out.box)
        item = out or (made.piece if made else None)
        if item is None:
            return False
        if made is not None and out is None:
            whole = made.work.box if in_bits else made.work.box.within(made.work.box)
            if not item.box.inside(whole):
                return False
        bits = self.bitwidths.get(number)
        sizes = [fmap_bytes(item.box, one) for one in ((bits,) if bits else BITWIDTHS)]
        return item.size == fmap_bits(item.box) if in_bits else item.size in sizes

    @cached_property
    def repeated(self) -> frozenset[tuple[int, int]]:
        """Snapshots (core, position) with a tensor_id twice (A, G042)."""
        return frozenset(
            (work.core, work.index)
            for work in self.ir.workloads()
            if len({tensor.tensor_id for tensor in work.buffer}) < len(work.buffer)
        )

    @cached_property
    def lives(self) -> dict[tuple[int, int], Life]:
        """By core and tensor_id; of two entries in one snapshot the first counts (A)."""
        found: dict[tuple[int, int], tuple[list[int], list[Tensor]]] = {}
        for work in self.ir.workloads():
            for tensor in work.buffer:
                at, tensors = found.setdefault((work.core, tensor.tensor_id), ([], []))
                if not at or at[-1] != work.index:
                    at.append(work.index)
                    tensors.append(tensor)
        return {key: Life(*key, tuple(at), tuple(tensors)) for key, (at, tensors) in found.items()}

    @cached_property
    def wavering(self) -> frozenset[tuple[int, int]]:
        """Tensors (core, tensor_id) whose type or bitwidth changes (A, G042)."""
        return frozenset(
            key for key, life in self.lives.items() if len({(item.type, item.bitwidth) for item in life.tensors}) > 1
        )

    def may_be(self, kind: TensorKind, tensor: Tensor, core: int) -> bool:
        """It is of this type, or wavers."""
        return tensor.type == kind or (core, tensor.tensor_id) in self.wavering

    @cached_property
    def rooms(self) -> dict[tuple[int, int], Made]:
        """The result that each `ofmap` tensor holds, by core and tensor_id (facts GEMINI 2.3): it belongs to the first
        workload of its layer in whose snapshot it is shown and that stores a piece of its shape."""
        found: dict[tuple[int, int], Made] = {}
        taken: set[int] = set()
        for work in self.ir.workloads():
            for tensor in work.buffer:
                key = (work.core, tensor.tensor_id)
                if tensor.type != "ofmap" or key in found or tensor.layer_name != work.layer_name:
                    continue
                for piece in work.ofmap:
                    if piece.to_dram and piece.box.shape == tensor.box.shape and piece.transfer_id not in taken:
                        found[key] = Made(work, piece)
                        taken.add(piece.transfer_id)
                        break
        return found

    @cached_property
    def stored_in(self) -> dict[int, tuple[int, int]]:
        """Of each transfer to DRAM: core and tensor_id of the tensor that it is stored from."""
        return {made.piece.transfer_id: key for key, made in self.rooms.items()}

    @cached_property
    def bitwidths(self) -> dict[int, int]:
        """Of transfers: that of a tensor with the id as source, else of the `ofmap` entry (facts GEMINI 4, G032).
        Nothing tells that of an id that is defined twice (G010)."""
        found: dict[int, int] = {}
        steady = (
            tensor
            for work in self.ir.workloads()
            for tensor in work.buffer
            if legal(tensor.align, tensor.bitwidth) and (work.core, tensor.tensor_id) not in self.wavering
        )
        for tensor in steady:
            for source in tensor.source:
                if source.transfer_id not in self.doubled:
                    found.setdefault(source.transfer_id, tensor.bitwidth)
        for number, key in self.stored_in.items():
            room = self.lives[key].first
            steady = key not in self.wavering and room.type == "ofmap"
            if steady and number not in self.doubled and legal(room.align, room.bitwidth):
                found.setdefault(number, room.bitwidth)
        return found


def holding(work: Workload, number: int) -> list[tuple[Tensor, Source]]:
    """`ifmap` tensors of a snapshot with a transfer among their sources, and that source."""
    return [
        (tensor, source)
        for tensor in work.buffer
        if tensor.type == "ifmap"
        for source in tensor.source
        if source.transfer_id == number
    ]


def read_tensor(work: Workload, operand: Ifmap) -> Tensor | None:
    """The L2 tensor that an operand is read from: flagged, and its ids contain those of the operand. Of several the one
    whose touched sources are just those ids."""
    ids = set(operand.transfer_id)
    fits = [item for item in work.buffer if item.cur_wl_ifmap and ids <= set(item.transfer_id)]
    exact = [item for item in fits if operand.box.inside(item.box) and touched(item, operand) == ids]
    return next(iter(exact or fits), None)


def touched(tensor: Tensor, operand: Ifmap) -> set[int]:
    """Ids of the sources that an operand's box reaches."""
    return {item.transfer_id for item in tensor.source if item.box.meets(operand.box)}


def own_entries(work: Workload) -> Sequence[Tensor]:
    """Buffer entries of a workload's own operands (B)."""
    return [
        item
        for item in work.buffer
        if item.type == "ifmap" and item.layer_name == work.layer_name and item.workload_id == work.workload_id
    ]
