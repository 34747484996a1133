"""Cut a small schedule out of a large one. Operands of the chosen layers that other layers make come from DRAM instead,
and results that no remaining layer reads go to DRAM."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from buda_emu.foreign.gemini.boxes import Box, hull
from buda_emu.foreign.gemini.document import ScheduleDocument, load
from buda_emu.foreign.gemini.index import Index, WorkloadOutput, find_read_tensor
from buda_emu.foreign.gemini.model import IR, Ofmap, Region, Source, Tensor, Workload
from buda_emu.foreign.gemini.rules import check
from buda_emu.foreign.gemini.sizes import UNIT, channel_multiple, fmap_bits, fmap_bytes, pieces, round_up
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import list_first
from buda_emu.support.errors import HostError, ProgramError, ScheduleError, UnsupportedError

Json = dict[str, Any]


_MOST_NAMES: Final = 12
"""Layers that a message names, so that it stays within a line or two."""


def choose_layers(ir: IR, words: Sequence[str]) -> list[str]:
    """Return the layers that `words` name, each a layer or `first..last` in the order of the schedule, each layer
    once. Raises HostError for a name that the schedule does not have."""
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
                hint = near(name, names) or f"it has {list_first(names, _MOST_NAMES)}"
                raise HostError(f"the schedule has no layer {name!r} ({hint})")
        low = names.index(ends[0])
        high = names.index(ends[-1])
        chosen += names[low : high + 1]
    return list(dict.fromkeys(chosen))


def _sort_by_time(ir: IR) -> list[Workload]:
    """Return the workloads of all cores in an order in which they could run."""
    return sorted(ir.workloads(), key=lambda work: (work.workload_id, work.core))


def slice_layers(ir: IR, layers: Sequence[str]) -> ScheduleDocument:
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
        self.steps = {(work.core, work.workload_id) for work in chain.from_iterable(self.kept.values())}
        self.loads: dict[int, tuple[Box, str, list[Workload]]] = {}  # transfer that is loaded now: box, layer, readers
        self.fresh: dict[tuple[int, int], int] = {}  # core and tensor_id of tensors that are loaded now: their transfer
        self.bits: dict[int, int] = {}
        self.free = 1 + max([*ir.transfers, *self.index.ins, -1])
        self.stored: set[int] = set()
        for work in chain.from_iterable(self.kept.values()):
            for piece in work.ofmap:
                if piece.to_dram or not self._kept_readers(piece):
                    self.stored.add(piece.transfer_id)

    def _keeps(self, output: WorkloadOutput) -> bool:
        """Return whether the workload that makes an output is part of the slice."""
        return (output.work.core, output.work.workload_id) in self.steps

    def _kept_readers(self, piece: Ofmap) -> list[Workload]:
        """Return the remaining workloads that read a piece."""
        readers = self.index.readers.get(piece.transfer_id, ())
        return [work for work in readers if (work.core, work.workload_id) in self.steps]

    def document(self) -> Json:
        """Return the JSON object of the slice."""
        cores = {str(core): [self._cut_workload(work) for work in works] for core, works in self.kept.items() if works}
        top = {key: value for key, value in self.content.items() if not key.isdecimal() and key != "-1"}
        result: Json = {"-1": {"in": self._dram_in_entries(), "out": self._dram_out_entries()}, **top, **cores}
        if not self.in_bits:
            _set_newly_added_flags(cores)
            _mark_last_sends(cores)
            self._add_store_rooms(cores)
            self._renumber_orders(cores)
        return result

    # ------------------------------------------------------------------------------------------------ workloads
    def _cut_workload(self, work: Workload) -> Json:
        """Return the JSON object of a remaining workload, changed in place: what refers to cut-off workloads is
        replaced by loads and stores."""
        entry: Json = self.content[str(work.core)][work.index]
        for piece, ofmap in zip(work.ofmap, entry["ofmap"], strict=True):
            ofmap["destination"] = [to for to in ofmap["destination"] if self._reaches(to)]
            if piece.transfer_id in self.stored and not piece.to_dram:
                ofmap["destination"].append({"type": "DRAM", self.core_key: self.dram})
        tensors: list[Json] = []
        for tensor, tensor_entry in zip(work.buffer, entry["buffer"], strict=True):
            if self._cut_tensor(work, tensor, tensor_entry):
                tensors.append(tensor_entry)
        entry["buffer"] = tensors
        if not self.in_bits:
            self._rename_loaded_operands(work, entry)
            self._drop_unused_weight_stores(work, entry)
        return entry

    def _reaches(self, destination: Json) -> bool:
        """Return whether a destination is DRAM or a workload that remains."""
        if destination["type"] == "DRAM":
            return True
        return (destination[self.core_key], destination["workload_id"]) in self.steps

    def _rename_loaded_operands(self, work: Workload, entry: Json) -> None:
        """Change operands, in the workload's JSON object `entry`, whose tensor is loaded because of the cut, so that
        they name that load."""
        for operand, ifmap in zip(work.ifmap, entry["ifmap"], strict=True):
            tensor = find_read_tensor(work, operand)
            if tensor is not None and (work.core, tensor.tensor_id) in self.fresh:
                ifmap["transfer_id"] = [self.fresh[work.core, tensor.tensor_id]]

    def _drop_unused_weight_stores(self, work: Workload, entry: Json) -> None:
        """Remove entries of the weight store, in the workload's JSON object `entry`, whose weights no remaining
        workload of the core uses."""
        used = {reader.weight.transfer_id for reader in self.kept[work.core] if reader.weight}
        for name in ("wl0_buffer", "wl1_buffer"):
            if entry.get(name):
                entry[name] = [store for store in entry[name] if tuple(store["transfer_id"]) in used] or None

    def _cut_tensor(self, work: Workload, tensor: Tensor, entry: Json) -> bool:
        """Return whether a buffer entry stays, and change its JSON object, `entry`: sources whose maker is cut off
        become loads from DRAM. Raises UnsupportedError for a tensor with pieces of layers on both sides of the cut."""
        if tensor.type == "ofmap":
            output = self.index.output_by_room.get((work.core, tensor.tensor_id))
            return self.in_bits or (output is not None and self._keeps(output))
        readers = self._later_readers(work, tensor)
        if not readers:
            return False
        cut_sources = [source for source in tensor.source if self._is_cut_off(source)]
        if cut_sources and self.in_bits:
            self._load_sources(tensor, cut_sources, entry, readers)
        elif cut_sources:
            if len(cut_sources) < len(tensor.source):
                raise UnsupportedError(
                    f"{work}: tensor {tensor.tensor_id} holds pieces of layers on both sides of the cut: choose "
                    f"them together"
                )
            self._load_tensor(work, tensor, entry, readers)
        return True

    def _load_sources(
        self, tensor: Tensor, cut_sources: Sequence[Source], entry: Json, readers: Sequence[Workload]
    ) -> None:
        """Turn the sources of a tensor whose makers are cut off, `cut_sources`, into loads from DRAM in its JSON
        object, `entry` (dialect B)."""
        for source, source_entry in zip(tensor.source, entry["source"], strict=True):
            if source in cut_sources:
                source_entry.update(type="DRAM", id=0)
                self._note_load(source.transfer_id, source.box, source.layer_name or "", readers)

    def _later_readers(self, work: Workload, tensor: Tensor) -> list[Workload]:
        """Return the remaining workloads of the core that read the tensor in this snapshot or a later one."""
        ids = set(tensor.transfer_id)
        readers = [reader for reader in self.kept[work.core] if reader.index >= work.index and ids & set(reader.reads)]
        if self.in_bits and tensor.type == "ifmap":
            return [reader for reader in readers if reader.workload_id == tensor.workload_id]
        return readers

    def _is_cut_off(self, source: Source) -> bool:
        """Return whether the workload that makes a source does not remain."""
        return source.type == "core" and not self._keeps(self.index.outputs_by_id[source.transfer_id])

    def _load_tensor(self, work: Workload, tensor: Tensor, entry: Json, readers: Sequence[Workload]) -> None:
        """Replace all sources of a tensor of dialect A, whose JSON object is `entry`, by one load from DRAM."""
        key = (work.core, tensor.tensor_id)
        if key not in self.fresh:
            self.fresh[key] = self.free
            self.free += 1
        number = self.fresh[key]
        layer = tensor.source[0].layer_name
        bounds = hull(self._box_in_layer(source.transfer_id) for source in tensor.source)
        operand_readers = [reader for reader in readers if tensor.tensor_id in _tensors_read(reader)]
        self._note_load(number, bounds, layer or "", operand_readers)
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
                "layer_name": layer,
            }
        ]

    def _box_in_layer(self, number: int) -> Box:
        """Return the box of a transfer of dialect A in the output of the layer that makes it."""
        output = self.index.outputs_by_id[number]
        return output.piece.box.shift(output.work.box.lower)

    def _note_load(self, number: int, box: Box, layer: str, readers: Sequence[Workload]) -> None:
        """Note that a transfer is loaded from DRAM because of the cut, and add the workloads that read it."""
        _box, _layer, known_readers = self.loads.setdefault(number, (box, layer, []))
        known_readers += [work for work in readers if work not in known_readers]

    # ------------------------------------------------------------------------------------------------ DRAM
    def _dram_in_entries(self) -> list[Json]:
        """Return the `in` entries of DRAM: the pieces of outputs that arrive there."""
        before = {entry["transfer_id"]: entry for entry in self.content["-1"]["in"]}
        outs = self.content["-1"]["out"]
        out_ids = {out["transfer_id"] for out in outs if self._is_read(out["transfer_id"])}
        entries: list[Json] = []
        for works in self.kept.values():
            for work in works:
                for piece in work.ofmap:
                    if piece.transfer_id in self.stored:
                        entry = before.get(piece.transfer_id) or self._make_dram_in(work, piece)
                        related = [number for number in entry.get("related_ofmap", ()) if number in out_ids]
                        entries.append({**entry, "related_ofmap": related})
        return entries

    def _make_dram_in(self, work: Workload, piece: Ofmap) -> Json:
        """Return the `in` entry of a result that is stored because of the cut."""
        if self.in_bits:
            box = piece.box
        else:
            box = piece.box.shift(work.box.lower)
        entry: Json = {
            "core_id": work.core,
            "workload_id": work.workload_id,
            "transfer_id": piece.transfer_id,
            "lower": list(box.lower),
            "upper": list(box.upper),
        }
        if not self.in_bits:
            entry["layer_name"] = work.layer_name
        return entry

    def _is_read(self, number: int) -> bool:
        """Return whether a remaining workload reads a transfer."""
        return any((work.core, work.workload_id) in self.steps for work in self.index.readers.get(number, ()))

    def _dram_out_entries(self) -> list[Json]:
        """Return the `out` entries of DRAM: the tensors that leave it and that remaining workloads read, old ones
        and those that are loaded because of the cut."""
        entries: list[Json] = []
        for out in self.content["-1"]["out"]:
            if self._is_read(out["transfer_id"]):
                destination = [to for to in out["destination"] if self._reaches(to)]
                related = [number for number in out["related_ifmap"] if number in self.stored]
                entries.append({**out, "destination": destination, "related_ifmap": related})
        for number, (box, _layer, readers) in self.loads.items():
            entries.append(self._make_dram_out(number, box, readers))
        return entries

    def _make_dram_out(self, number: int, box: Box, readers: Sequence[Workload]) -> Json:
        """Return the `out` entry of a tensor that is loaded because of the cut."""
        destinations: list[Json] = []
        for reader in readers:
            destination: Json = {self.core_key: reader.core, "type": "core", "workload_id": reader.workload_id}
            if not self.in_bits:
                destination["layer_name"] = reader.layer_name
            destinations.append(destination)
        entry: Json = {
            "transfer_id": number,
            "type": "fmap",
            "size": fmap_bits(box) if self.in_bits else fmap_bytes(box, self.bits[number]),
            "lower": list(box.lower),
            "upper": list(box.upper),
            "destination": destinations,
            "related_ifmap": [],
        }
        if self.in_bits:
            entry["layer_name"] = readers[0].layer_name
        return entry

    # ------------------------------------------------------------------------------------------------ L2 (A)
    def _add_store_rooms(self, cores: Mapping[str, list[Json]]) -> None:
        """Reserve L2 for each result that is stored to DRAM only because its readers were cut off: an `ofmap` tensor in
        the snapshots of its workload and of the next one. Raises ProgramError where L2 has no room."""
        for core, works in self.kept.items():
            entries = cores.get(str(core), [])
            top = 1 + max((tensor["tensor_id"] for entry in entries for tensor in entry["buffer"]), default=-1)
            for at, work in enumerate(works):
                for piece in work.ofmap:
                    if piece.to_dram or piece.transfer_id not in self.stored:
                        continue
                    self._add_store_room(entries, at, work, piece, top)
                    top += 1

    def _add_store_room(self, entries: Sequence[Json], at: int, work: Workload, piece: Ofmap, number: int) -> None:
        """Add a result as `ofmap` tensor `number` to the snapshots, `entries`, of its workload at position `at` and of
        the next one. Raises ProgramError where L2 has no room."""
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
        """Number tensor_order anew over all cores: loads by the workload whose snapshot shows them first, stores
        after their maker. `cores` are the JSON objects of the workloads by core."""
        sort_keys: dict[tuple[str, Any], tuple[int, int, int]] = {}
        records_by_key: dict[tuple[str, Any], list[Json]] = {}
        for core, entries in cores.items():
            for entry in entries:
                for name, record, kind in _ordered_records(entry):
                    records_by_key.setdefault((core, name), []).append(record)
                    if kind is not None:
                        sort_key = (entry["workload_id"], kind, record["tensor_order"])
                        sort_keys.setdefault((core, name), sort_key)
        ordered = sorted(sort_keys, key=lambda key: (sort_keys[key], int(key[0]), str(key[1])))
        numbers = {key: number for number, key in enumerate(ordered)}
        for key, records in records_by_key.items():
            for record in records:
                record["tensor_order"] = numbers.get(key, len(ordered))


def _ordered_records(entry: Json) -> Iterator[tuple[Any, Json, int | None]]:
    """Yield the records of a workload that have a tensor_order: name, record, and 0 for a load, 1 for a store, None for
    a tensor that does not go through DRAM."""
    for tensor in entry["buffer"]:
        kind: int | None = None
        if tensor["type"] == "ofmap":
            kind = 1
        elif any(source["type"] == "DRAM" for source in tensor["source"]):
            kind = 0
        yield tensor["tensor_id"], tensor, kind
    for store in entry.get("wl0_buffer") or entry.get("wl1_buffer") or ():
        if store["source"] == "DDR":
            yield f"order {store['tensor_order']}", store, 0


def _tensors_read(work: Workload) -> set[int]:
    """Return the tensor_ids that the operands of a workload are read from."""
    tensors = (find_read_tensor(work, operand) for operand in work.ifmap)
    return {tensor.tensor_id for tensor in tensors if tensor is not None}


def _mark_last_sends(cores: Mapping[str, list[Json]]) -> None:
    """Set start_send in the last snapshot of each stored tensor that has it in no snapshot."""
    for entries in cores.values():
        last: dict[int, Json] = {}
        started: set[int] = set()
        for entry in entries:
            for tensor in entry["buffer"]:
                if tensor["type"] == "ofmap":
                    last[tensor["tensor_id"]] = tensor
                    if tensor["start_send"]:
                        started.add(tensor["tensor_id"])
        for number, tensor in last.items():
            tensor["start_send"] = tensor["start_send"] or number not in started


def _set_newly_added_flags(cores: Mapping[str, list[Json]]) -> None:
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
            at = max(at, end)
        if at + size <= high:
            return at
    return None
