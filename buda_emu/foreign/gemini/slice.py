"""Cut a small schedule out of a large one. Operands of the chosen layers that other layers make come from DRAM instead,
and results that no remaining layer reads go to DRAM."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.foreign.gemini.boxes import Box, hull
from buda_emu.foreign.gemini.document import Document, load
from buda_emu.foreign.gemini.index import Index, WorkloadOutput, find_read_tensor
from buda_emu.foreign.gemini.model import IR, Ofmap, Region, Workload
from buda_emu.foreign.gemini.rings import pieces
from buda_emu.foreign.gemini.rules import check
from buda_emu.foreign.gemini.sizes import UNIT, channel_multiple, fmap_bits, fmap_bytes, round_up
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, ProgramError, ScheduleError, UnsupportedError

Json = dict[str, Any]


def choose_layers(ir: IR, words: Sequence[str]) -> list[str]:
    """Return layers given by name or as `first..last` in the order of the schedule, each once. Raises HostError for a
    name that the schedule does not have."""
    names = list(dict.fromkeys(work.layer_name for work in _sort_by_time(ir)))
    chosen: list[str] = []
    for word in words:
        first, dots, last = word.partition("..")
        if dots and word not in names:
            ends = [first, last]
        else:
            ends = [word]
        for name in ends:
            if name not in names:
                hint = near(name, names)
                raise HostError(f"the schedule has no layer {name!r}{f' ({hint})' if hint else ''}")
        low = names.index(ends[0])
        high = names.index(ends[-1])
        chosen += names[low : high + 1]
    return list(dict.fromkeys(chosen))


def _sort_by_time(ir: IR) -> list[Workload]:
    """Return the workloads of all cores in an order in which they could run."""
    return sorted(ir.workloads(), key=lambda work: (work.workload_id, work.core))


def slice_layers(ir: IR, layers: Sequence[str]) -> Document:
    """Return a schedule of these layers alone. Tensors that stay keep their addresses.

    Raises ScheduleError for a schedule that breaks rules, HostError for unknown layers or none, UnsupportedError for a
    tensor with pieces of layers on both sides of the cut, ProgramError where L2 has no room for a result that must be
    stored now.
    """
    errors = [finding for finding in check(ir) if finding.severity == "error"]
    if errors:
        raise ScheduleError(f"a schedule that breaks rules is not cut\n{render(errors)}", errors)
    unknown = sorted(set(layers) - {work.layer_name for work in ir.workloads()})
    if unknown or not layers:
        raise HostError(f"the schedule has no layer {unknown[0]!r}" if unknown else "no layer is chosen")
    cut = _Cut(ir, frozenset(layers))
    return load(cut.document())


class _Cut:
    """One cut: the schedule, the workloads that remain, and the loads and stores that replace what is cut off."""

    def __init__(self, ir: IR, layers: frozenset[str]) -> None:
        self.ir = ir
        self.index = Index(ir)
        self.in_bits = ir.form.in_bits
        self.core_key = ir.form.core_key
        self.dram = ir.form.dram
        self.content = ir.to_json()
        self.kept = {core: [work for work in works if work.layer_name in layers] for core, works in ir.cores.items()}
        self.steps = {(work.core, work.workload_id) for works in self.kept.values() for work in works}
        self.loads: dict[int, tuple[Box, str, list[Workload]]] = {}  # transfer that is loaded now: box, layer, readers
        self.fresh: dict[tuple[int, int], int] = {}  # core and tensor_id of tensors that are loaded now: their transfer
        self.bits: dict[int, int] = {}
        self.free = 1 + max([*ir.transfers, *self.index.ins, -1])
        self.stored = {
            piece.transfer_id
            for works in self.kept.values()
            for work in works
            for piece in work.ofmap
            if piece.to_dram or not self._readers(piece)
        }

    def _keeps(self, output: WorkloadOutput) -> bool:
        return (output.work.core, output.work.workload_id) in self.steps

    def _readers(self, piece: Ofmap) -> list[Workload]:
        readers = self.index.readers.get(piece.transfer_id, ())
        return [work for work in readers if (work.core, work.workload_id) in self.steps]

    def document(self) -> Json:
        """Return the JSON object of the slice."""
        cores = {str(core): [self._workload(work) for work in works] for core, works in self.kept.items() if works}
        top = {key: value for key, value in self.content.items() if not key.isdecimal() and key != "-1"}
        result: Json = {"-1": {"in": self._dram_in_entries(), "out": self._dram_out_entries()}, **top, **cores}
        if not self.in_bits:
            _mark_newly_added(cores)
            _mark_last_sends(cores)
            self._add_store_rooms(cores)
            self._renumber_orders(cores)
        return result

    # ------------------------------------------------------------------------------------------------ workloads
    def _workload(self, work: Workload) -> Json:
        entry: Json = self.content[str(work.core)][work.index]
        for piece, item in zip(work.ofmap, entry["ofmap"], strict=True):
            item["destination"] = [
                to
                for to in item["destination"]
                if to["type"] == "DRAM" or (to[self.core_key], to["workload_id"]) in self.steps
            ]
            if piece.transfer_id in self.stored and not piece.to_dram:
                item["destination"].append({"type": "DRAM", self.core_key: self.dram})
        entry["buffer"] = [
            item for tensor, item in zip(work.buffer, entry["buffer"], strict=True) if self._tensor(work, tensor, item)
        ]
        if self.in_bits:
            return entry
        for operand, item in zip(work.ifmap, entry["ifmap"], strict=True):
            tensor = find_read_tensor(work, operand)
            if tensor is not None:
                number = self.fresh.get((work.core, tensor.tensor_id))
            else:
                number = None
            if number is not None:
                item["transfer_id"] = [number]
        names = ("wl0_buffer", "wl1_buffer")
        wanted = {one.weight.transfer_id for one in self.kept[work.core] if one.weight}
        for name in names:
            if entry.get(name):
                entry[name] = [one for one in entry[name] if tuple(one["transfer_id"]) in wanted] or None
        return entry

    def _tensor(self, work: Workload, tensor: Any, entry: Json) -> bool:
        """Return whether a buffer entry stays. Sources whose maker is cut off become loads from DRAM."""
        works = self.kept[work.core]
        if tensor.type == "ofmap":
            output = self.index.output_by_room.get((work.core, tensor.tensor_id))
            return self.in_bits or (output is not None and self._keeps(output))
        ids = set(tensor.transfer_id)
        readers = [reader for reader in works if ids & set(reader.reads) and reader.index >= work.index]
        if self.in_bits and tensor.type == "ifmap":
            readers = [reader for reader in readers if reader.workload_id == tensor.workload_id]
        if not readers:
            return False
        gone = [
            source
            for source in tensor.source
            if source.type == "core" and not self._keeps(self.index.outputs_by_id[source.transfer_id])
        ]
        if not gone:
            return True
        if self.in_bits:
            for source, reader in zip(tensor.source, entry["source"], strict=True):
                if source in gone:
                    reader.update(type="DRAM", id=0)
                    self._load(source.transfer_id, source.box, source.layer_name or "", readers)
            return True
        if len(gone) < len(tensor.source):
            raise UnsupportedError(
                f"{work}: tensor {tensor.tensor_id} holds pieces of layers on both sides of the cut: choose "
                f"them together"
            )
        key = (work.core, tensor.tensor_id)
        if key not in self.fresh:
            self.fresh[key] = self.free
            self.free += 1
        number = self.fresh[key]
        boxes = [self._box_in_layer(source.transfer_id) for source in gone]
        reading = [reader for reader in readers if tensor.tensor_id in _tensors_read(reader)]
        self._load(number, hull(boxes), gone[0].layer_name or "", reading)
        self.bits[number] = tensor.bitwidth
        entry["transfer_id"] = [number]
        entry["source"] = [
            {
                "core_id": -1,
                "type": "DRAM",
                "transfer_id": number,
                "size": entry["size"],
                "lower": entry["lower"],
                "upper": entry["upper"],
                "layer_name": gone[0].layer_name,
            }
        ]
        return True

    def _box_in_layer(self, number: int) -> Box:
        output = self.index.outputs_by_id[number]
        return output.piece.box.moved(output.work.box.lower)

    def _load(self, number: int, box: Box, layer: str, readers: Sequence[Workload]) -> None:
        _box, _layer, known_readers = self.loads.setdefault(number, (box, layer, []))
        known_readers += [work for work in readers if work not in known_readers]

    # ------------------------------------------------------------------------------------------------ DRAM
    def _dram_in_entries(self) -> list[Json]:
        before = {entry["transfer_id"]: entry for entry in self.content["-1"]["in"]}
        out_ids = {item["transfer_id"] for item in self.content["-1"]["out"] if self._is_read(item["transfer_id"])}
        found: list[Json] = []
        for works in self.kept.values():
            for work in works:
                for piece in work.ofmap:
                    if piece.transfer_id not in self.stored:
                        continue
                    if self.in_bits:
                        box = piece.box
                    else:
                        box = piece.box.moved(work.box.lower)
                    entry = before.get(
                        piece.transfer_id,
                        {
                            "core_id": work.core,
                            "workload_id": work.workload_id,
                            "transfer_id": piece.transfer_id,
                            "lower": list(box.lower),
                            "upper": list(box.upper),
                            **({} if self.in_bits else {"layer_name": work.layer_name}),
                        },
                    )
                    related = [number for number in entry.get("related_ofmap", ()) if number in out_ids]
                    found.append({**entry, "related_ofmap": related})
        return found

    def _is_read(self, number: int) -> bool:
        return any((work.core, work.workload_id) in self.steps for work in self.index.readers.get(number, ()))

    def _dram_out_entries(self) -> list[Json]:
        found: list[Json] = []
        for item in self.content["-1"]["out"]:
            if not self._is_read(item["transfer_id"]):
                continue
            to = [one for one in item["destination"] if (one[self.core_key], one["workload_id"]) in self.steps]
            related = [number for number in item["related_ifmap"] if number in self.stored]
            found.append({**item, "destination": to, "related_ifmap": related})
        for number, (box, _layer, readers) in self.loads.items():
            if self.in_bits:
                size = fmap_bits(box)
            else:
                size = fmap_bytes(box, self.bits[number])
            to = [{self.core_key: work.core, "type": "core", "workload_id": work.workload_id} for work in readers]
            if self.in_bits:
                names: Json = {"layer_name": readers[0].layer_name}
            else:
                names = {}
            if not self.in_bits:
                to = [{**one, "layer_name": work.layer_name} for one, work in zip(to, readers, strict=True)]
            found.append(
                {
                    "transfer_id": number,
                    "type": "fmap",
                    "size": size,
                    "lower": list(box.lower),
                    "upper": list(box.upper),
                    "destination": to,
                    "related_ifmap": [],
                    **names,
                }
            )
        return found

    # ------------------------------------------------------------------------------------------------ L2 (A)
    def _add_store_rooms(self, cores: Mapping[str, list[Json]]) -> None:
        """Add an `ofmap` tensor for each result that is stored only because of the cut."""
        for core, works in self.kept.items():
            entries = cores.get(str(core), [])
            top = 1 + max((tensor["tensor_id"] for entry in entries for tensor in entry["buffer"]), default=-1)
            for at, work in enumerate(works):
                for piece in work.ofmap:
                    if piece.to_dram or piece.transfer_id not in self.stored:
                        continue
                    self._store(entries, at, work, piece, top)
                    top += 1

    def _store(self, entries: Sequence[Json], at: int, work: Workload, piece: Ofmap, number: int) -> None:
        last = min(at + 1, len(entries) - 1)
        bits = self.index.bitwidths.get(piece.transfer_id, 8)
        box = piece.box.within(piece.box)
        size = fmap_bytes(box, bits)
        address = _find_gap([entries[at_snapshot] for at_snapshot in range(at, last + 1)], round_up(size, UNIT))
        if address is None:
            raise ProgramError(
                f"{work}: L2 has no room of {size} bytes for transfer {piece.transfer_id}", kind="allocation"
            )
        for at_snapshot in range(at, last + 1):
            entries[at_snapshot]["buffer"].append(
                {
                    "tensor_id": number,
                    "address": address,
                    "size": size,
                    "align": channel_multiple(bits),
                    "bitwidth": bits,
                    "lower": list(box.lower),
                    "upper": list(box.upper),
                    "type": "ofmap",
                    "layer_name": work.layer_name,
                    "tensor_order": 0,
                    "start_send": at_snapshot == last,
                }
            )

    def _renumber_orders(self, cores: Mapping[str, list[Json]]) -> None:
        """Number tensor_order anew: loads by the workload whose snapshot shows them first, stores after their maker."""
        items: dict[tuple[str, Any], tuple[int, int, int]] = {}
        places: dict[tuple[str, Any], list[Json]] = {}
        for core, entries in cores.items():
            for entry in entries:
                number = entry["workload_id"]
                for tensor in entry["buffer"]:
                    key = (core, tensor["tensor_id"])
                    dram = tensor["type"] == "ofmap" or any(one["type"] == "DRAM" for one in tensor["source"])
                    places.setdefault(key, []).append(tensor)
                    if dram:
                        items.setdefault(key, (number, int(tensor["type"] == "ofmap"), tensor["tensor_order"]))
                for one in entry.get("wl0_buffer") or entry.get("wl1_buffer") or ():
                    if one["source"] == "DDR":
                        key = (core, f"order {one['tensor_order']}")
                        places.setdefault(key, []).append(one)
                        items.setdefault(key, (number, 0, one["tensor_order"]))
        ordered = sorted(items, key=lambda key: (items[key], int(key[0]), str(key[1])))
        for key, held in places.items():
            if key in items:
                order = ordered.index(key)
            else:
                order = len(ordered)
            for one in held:
                one["tensor_order"] = order


def _tensors_read(work: Workload) -> set[int]:
    """Return the tensor_ids that the operands of a workload are read from."""
    tensors = (find_read_tensor(work, operand) for operand in work.ifmap)
    return {tensor.tensor_id for tensor in tensors if tensor is not None}


def _mark_last_sends(cores: Mapping[str, list[Json]]) -> None:
    """Set start_send in the last snapshot of each stored tensor that has it in none."""
    for entries in cores.values():
        last: dict[int, Json] = {}
        started: set[int] = set()
        for entry in entries:
            for tensor in entry["buffer"]:
                if tensor["type"] == "ofmap":
                    last[tensor["tensor_id"]] = tensor
                    if tensor["start_send"]:
                        started |= {tensor["tensor_id"]}
                    else:
                        started |= set()
        for number, tensor in last.items():
            tensor["start_send"] = tensor["start_send"] or number not in started


def _mark_newly_added(cores: Mapping[str, list[Json]]) -> None:
    """Recompute newly_added of every buffer entry."""
    for entries in cores.values():
        before: set[int] = set()
        for entry in entries:
            for tensor in entry["buffer"]:
                if "newly_added" in tensor:
                    tensor["newly_added"] = tensor["tensor_id"] not in before
            before = {tensor["tensor_id"] for tensor in entry["buffer"]}


def _find_gap(entries: Sequence[Json], size: int) -> int | None:
    """Return an address with `size` free bytes, without wrapping, in all these snapshots; None if there is none."""
    used: list[Region] = []
    regions = [tuple(region) for region in entries[0]["ring_buffer_info"]]
    for entry in entries:
        regions = [region for region in regions if list(region) in entry["ring_buffer_info"]]
        for tensor in entry["buffer"]:
            home = next((r for r in entry["ring_buffer_info"] if r[0] <= tensor["address"] < r[1]), None)
            if home is not None:
                used += pieces((home[0], home[1]), tensor["address"], round_up(tensor["size"], UNIT))
    for low, high in regions:
        at = low
        for begin, end in sorted(used):
            if begin >= at + size:
                break
            at = max(at, end) if end > at else at
        if at + size <= high:
            return at
    return None
