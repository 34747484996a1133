"""Index of a schedule for rules, timing and execution: producers, readers and tensors by transfer id, built once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

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
from buda_emu.foreign.gemini.sizes import BITWIDTHS, fmap_bits, fmap_bytes, is_legal_alignment, weight_bytes


@dataclass(frozen=True, slots=True)
class WorkloadOutput:
    """A piece of the output of a workload, together with the workload."""

    work: Workload
    piece: Ofmap


@dataclass(frozen=True, slots=True)
class Life:
    """The life of a tensor under one tensor_id in a core's L2: the positions of the snapshots that show it, in order,
    and its entry in each."""

    core: int
    tensor_id: int
    at: tuple[int, ...]
    tensors: tuple[Tensor, ...]

    @property
    def first(self) -> Tensor:
        """The entry in the first snapshot that shows the tensor."""
        return self.tensors[0]


class Index:
    """Index of one schedule. Where a transfer id is defined twice, the first definition counts."""

    def __init__(self, ir: IR) -> None:
        self.ir = ir
        self.outs: dict[int, DramOut] = {}
        self.ins: dict[int, DramIn] = {}
        self.outputs_by_id: dict[int, WorkloadOutput] = {}
        self.duplicate_ids: dict[int, str] = {}  # ids that are defined twice, and where the second time
        self.by_id: dict[tuple[int, int], Workload] = {}
        self.readers: dict[int, list[Workload]] = {}
        for out in ir.dram_out:
            self._define(out.transfer_id, f"{out.place}/transfer_id")
            self.outs.setdefault(out.transfer_id, out)
        for work in ir.workloads():
            self.by_id.setdefault((work.core, work.workload_id), work)
            for piece in work.ofmap:
                self._define(piece.transfer_id, f"{piece.place}/transfer_id")
                self.outputs_by_id.setdefault(piece.transfer_id, WorkloadOutput(work, piece))
            for number in work.reads:
                self.readers.setdefault(number, []).append(work)
        for entry in ir.dram_in:
            if entry.transfer_id in self.ins:
                self.duplicate_ids.setdefault(entry.transfer_id, f"{entry.place}/transfer_id")
            self.ins.setdefault(entry.transfer_id, entry)

    def _define(self, number: int, place: str) -> None:
        """Note a definition of transfer `number` at `place`. A second one makes the id a duplicate."""
        if number in self.outs or number in self.outputs_by_id:
            self.duplicate_ids.setdefault(number, place)

    def producer(self, number: int) -> "DramOut | WorkloadOutput | None":
        """Return the `out` entry or the workload output that a transfer comes from, None if nothing makes it."""
        return self.outs.get(number) or self.outputs_by_id.get(number)

    @cached_property
    def unordered_cores(self) -> frozenset[int]:
        """Cores whose workload ids do not tell their workloads apart (G005)."""
        cores: set[int] = set()
        seen: dict[int, int] = {}
        for core, works in self.ir.cores.items():
            if any(a.workload_id >= b.workload_id for a, b in pairwise(works)):
                cores.add(core)
            for work in works if self.ir.form.global_ids else ():
                if seen.setdefault(work.workload_id, core) != core:
                    cores |= {core, seen[work.workload_id]}
        return frozenset(cores)

    def destinations(self) -> Iterator[tuple[int, "DramOut | WorkloadOutput", Destination]]:
        """Yield the id, producer and destination of every transfer, once for each destination."""
        for out in self.ir.dram_out:
            for to in out.destination:
                yield out.transfer_id, out, to
        for work in self.ir.workloads():
            for piece in work.ofmap:
                for to in piece.destination:
                    yield piece.transfer_id, WorkloadOutput(work, piece), to

    def find_target(self, to: Destination) -> Workload | None:
        """Return the workload that a destination names, None for DRAM and for one that does not exist."""
        if to.workload_id is None:
            return None
        return self.by_id.get((to.core_id, to.workload_id))

    @cached_property
    def ids_sent_nowhere(self) -> frozenset[int]:
        """Transfer ids with a destination that does not exist (G004, G015)."""
        return frozenset(
            number for number, _, to in self.destinations() if to.type == "core" and self.find_target(to) is None
        )

    @cached_property
    def ids_without_producer(self) -> frozenset[int]:
        """Transfer ids that are read and that nothing makes (G016)."""
        return frozenset(number for number in self.readers if self.producer(number) is None)

    @cached_property
    def ids_of_empty_workloads(self) -> frozenset[int]:
        """Transfer ids that nothing makes, and whose sources name a workload without ofmaps (G038)."""
        empty = {(work.core, work.layer_name) for work in self.ir.workloads() if not work.ofmap}
        if not empty:
            return frozenset()
        ids: set[int] = set()
        for _work, tensor in self.ir.buffer_entries():
            for source in tensor.source:
                named = source.type == "core" and (source.core_id, source.layer_name) in empty
                if named and self.producer(source.transfer_id) is None:
                    ids.add(source.transfer_id)
        return frozenset(ids)

    def reads_missing_transfer(self, work: Workload) -> bool:
        """Return whether the workload reads a transfer that nothing makes, a weight as an operand, or a feature map as
        a weight (G016)."""
        return (work.core, work.index) in self._steps_with_missing_transfers

    @cached_property
    def _steps_with_missing_transfers(self) -> frozenset[tuple[int, int]]:
        """The workloads (core, position) that read a transfer as `reads_missing_transfer` describes."""
        steps: set[tuple[int, int]] = set()
        for work in self.ir.workloads():
            operands = set(work.operand_ids)
            for number in work.reads:
                out = self.outs.get(number)
                is_weight = out is not None and out.type == "weight"
                mixed = number not in self.duplicate_ids and is_weight == (number in operands)
                if number in self.ids_without_producer or (mixed and not self.ir.form.activations_as_weights):
                    steps.add((work.core, work.index))
        return frozenset(steps)

    @cached_property
    def inconsistent_readers(self) -> frozenset[tuple[int, int]]:
        """Workloads (core, position) whose operands contradict the buffer. In dialect A an operand is in no tensor or
        not made of the sources that it reaches, or more tensors are flagged than there are operands (G044); in dialect
        B the ids of the buffer entry differ (G036)."""
        steps: set[tuple[int, int]] = set()
        for work in self.ir.workloads():
            if self.ir.form.joint_operands:
                is_consistent = _has_joint_ids(work)
            else:
                is_consistent = _has_operand_tensors(work)
            if not is_consistent:
                steps.add((work.core, work.index))
        return frozenset(steps)

    def is_consistent(self, number: int) -> bool:
        """Return whether the record of a transfer's producer agrees with itself: the piece lies in its workload, and
        the size is that of the box. Otherwise G031, G032 or G038 reports it, and other rules conclude nothing from the
        record."""
        out = self.outs.get(number)
        if out is not None and out.type == "weight":
            if self.ir.form.in_bits:
                return out.size % (8 * out.box.shape[1]) == 0
            return out.size == weight_bytes(out.box)
        if out is not None:
            return self._has_size_of_box(number, out)
        output = self.outputs_by_id.get(number)
        if output is None:
            return False
        if self.ir.form.in_bits:
            extent = output.work.box
        else:
            extent = output.work.box.within(output.work.box)
        return output.piece.box.inside(extent) and self._has_size_of_box(number, output.piece)

    def _has_size_of_box(self, number: int, record: DramOut | Ofmap) -> bool:
        """Return whether a feature map has the size of its box, in any bitwidth where its own is unknown."""
        if self.ir.form.in_bits:
            return record.size == fmap_bits(record.box)
        bits = self.bitwidths.get(number)
        bitwidths = (bits,) if bits else BITWIDTHS
        return record.size in [fmap_bytes(record.box, width) for width in bitwidths]

    @cached_property
    def snapshots_with_duplicates(self) -> frozenset[tuple[int, int]]:
        """Snapshots (core, position) that show a tensor_id twice (dialect A, G042)."""
        return frozenset(
            (work.core, work.index)
            for work in self.ir.workloads()
            if len({tensor.tensor_id for tensor in work.buffer}) < len(work.buffer)
        )

    @cached_property
    def lives(self) -> dict[tuple[int, int], Life]:
        """The life of each tensor by core and tensor_id (dialect A). Of two entries in one snapshot the first
        counts."""
        snapshots: dict[tuple[int, int], tuple[list[int], list[Tensor]]] = {}
        for work in self.ir.workloads():
            for tensor in work.buffer:
                at, tensors = snapshots.setdefault((work.core, tensor.tensor_id), ([], []))
                if not at or at[-1] != work.index:
                    at.append(work.index)
                    tensors.append(tensor)
        return {key: Life(*key, tuple(at), tuple(tensors)) for key, (at, tensors) in snapshots.items()}

    @cached_property
    def changing_tensors(self) -> frozenset[tuple[int, int]]:
        """Tensors (core, tensor_id) whose type or bitwidth changes during their life (dialect A, G042)."""
        return frozenset(
            key
            for key, life in self.lives.items()
            if len({(tensor.type, tensor.bitwidth) for tensor in life.tensors}) > 1
        )

    def may_be(self, kind: TensorKind, tensor: Tensor, core: int) -> bool:
        """Return whether the tensor is of this type, or changes its type or bitwidth and so may be."""
        return tensor.type == kind or (core, tensor.tensor_id) in self.changing_tensors

    @cached_property
    def output_by_room(self) -> dict[tuple[int, int], WorkloadOutput]:
        """The result that each `ofmap` tensor holds, by core and tensor_id (facts GEMINI 2.3). A tensor belongs to the
        first workload of its layer whose snapshot shows it and that stores a piece of its shape."""
        outputs: dict[tuple[int, int], WorkloadOutput] = {}
        assigned_ids: set[int] = set()
        for work in self.ir.workloads():
            for tensor in work.buffer:
                key = (work.core, tensor.tensor_id)
                if tensor.type != "ofmap" or key in outputs or tensor.layer_name != work.layer_name:
                    continue
                for piece in work.ofmap:
                    if piece.to_dram and piece.box.shape == tensor.box.shape and piece.transfer_id not in assigned_ids:
                        outputs[key] = WorkloadOutput(work, piece)
                        assigned_ids.add(piece.transfer_id)
                        break
        return outputs

    @cached_property
    def room_of_output(self) -> dict[int, tuple[int, int]]:
        """Core and tensor_id of the tensor that each transfer to DRAM is stored from."""
        return {output.piece.transfer_id: key for key, output in self.output_by_room.items()}

    @cached_property
    def bitwidths(self) -> dict[int, int]:
        """Bitwidth of each transfer: that of a tensor that has the id as a source, else that of its `ofmap` tensor
        (facts GEMINI 4, G032). An id that is defined twice has none (G010)."""
        widths: dict[int, int] = {}
        for work, tensor in self.ir.buffer_entries():
            if self._has_steady_width((work.core, tensor.tensor_id), tensor):
                for source in tensor.source:
                    widths.setdefault(source.transfer_id, tensor.bitwidth)
        for number, key in self.room_of_output.items():
            room = self.lives[key].first
            if room.type == "ofmap" and self._has_steady_width(key, room):
                widths.setdefault(number, room.bitwidth)
        return {number: bits for number, bits in widths.items() if number not in self.duplicate_ids}

    def _has_steady_width(self, key: tuple[int, int], tensor: Tensor) -> bool:
        """Return whether the bitwidth of a tensor (core, tensor_id) is legal and does not change."""
        return key not in self.changing_tensors and is_legal_alignment(tensor.align, tensor.bitwidth)


def _has_joint_ids(work: Workload) -> bool:
    """Return whether each operand has the transfers of the workload's operand entries, if there are any (dialect B)."""
    held = set(chain.from_iterable(entry.transfer_id for entry in operand_entries(work)))
    return not held or all(set(ifmap.transfer_id) == held for ifmap in work.ifmap)


def _has_operand_tensors(work: Workload) -> bool:
    """Return whether each operand is in a tensor and made of the sources that it reaches, and no more tensors are
    flagged than there are operands (dialect A)."""
    if sum(tensor.cur_wl_ifmap for tensor in work.buffer) > len(work.ifmap):
        return False
    for ifmap in work.ifmap:
        tensor = find_read_tensor(work, ifmap)
        if tensor is None or reached_sources(tensor, ifmap) != set(ifmap.transfer_id):
            return False
    return True


def tensors_holding(work: Workload, number: int) -> list[tuple[Tensor, Source]]:
    """Return the `ifmap` tensors of a workload's snapshot that have transfer `number` as a source, each with that
    source."""
    pairs: list[tuple[Tensor, Source]] = []
    for tensor in work.buffer:
        if tensor.type == "ifmap":
            pairs += [(tensor, source) for source in tensor.source if source.transfer_id == number]
    return pairs


def find_read_tensor(work: Workload, operand: Ifmap) -> Tensor | None:
    """Return the L2 tensor that an operand is read from: it has cur_wl_ifmap, and its ids contain the operand's. Of
    several such tensors, one whose touched sources are exactly the operand's ids is preferred."""
    ids = set(operand.transfer_id)
    fits = [tensor for tensor in work.buffer if tensor.cur_wl_ifmap and ids <= set(tensor.transfer_id)]
    exact = [tensor for tensor in fits if operand.box.inside(tensor.box) and reached_sources(tensor, operand) == ids]
    return next(iter(exact or fits), None)


def reached_sources(tensor: Tensor, operand: Ifmap) -> set[int]:
    """Return the transfer ids of the sources that the operand's box reaches."""
    return {source.transfer_id for source in tensor.source if source.box.meets(operand.box)}


def operand_entries(work: Workload) -> Sequence[Tensor]:
    """Return the buffer entries of a workload's own operands (dialect B)."""
    return [
        tensor
        for tensor in work.buffer
        if tensor.type == "ifmap" and tensor.layer_name == work.layer_name and tensor.workload_id == work.workload_id
    ]
