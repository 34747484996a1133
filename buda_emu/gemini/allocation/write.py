"""The JSON object of an allocated schedule (facts GEMINI 2, 7)."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.gemini.allocation.tensors import INT8, Resident, weight_box
from buda_emu.gemini.boxes import Box
from buda_emu.gemini.index import Index
from buda_emu.gemini.model import IR, Destination, Workload
from buda_emu.gemini.sizes import UNIT, fmap_bytes, weight_bytes
from buda_emu.gemini.time.plan import load_key

_PE = ("conv2d", "fc")


class _Writer:
    def __init__(self, ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> None:
        self.ir = ir
        self.index = index
        self.placed = placed
        self.buffersize = buffersize
        self.orders, self.count = self._orders()

    def _orders(self) -> tuple[dict[tuple[int, int], int], int]:
        """tensor_order by core and tensor_id: the DRAM queue of dialect B, with each core's own loads."""
        keys: list[tuple[tuple[int, int, int], int, int]] = []
        for core, items in self.placed.items():
            works = self.ir.cores[core]
            for item in items:
                if item.piece is not None:
                    keys.append(((works[item.first].workload_id, 1, item.piece.transfer_id), core, item.number))
                elif item.from_dram:
                    number = item.sources[0][0].transfer_id
                    keys.append((load_key(self.index, number, works[item.first]), core, item.number))
        orders = {(core, number): order for order, (_key, core, number) in enumerate(sorted(keys))}
        return orders, len(keys)

    def core(self, key: int) -> int:
        """Core id of dialect A."""
        x, y = self.ir.position(key)
        return y * self.ir.xlen + x

    def document(self) -> dict[str, Any]:
        """The whole object."""
        return {
            "-1": {"in": self._arrives(), "out": self._leaves()},
            "buffersize": self.buffersize,
            "top_batch_cut": self.ir.document.get("top_batch_cut", 1),
            "xlen": self.ir.xlen,
            "ylen": self.ir.ylen,
            **{str(self.core(key)): [self._workload(work) for work in works] for key, works in self.ir.cores.items()},
        }

    def _arrives(self) -> list[dict[str, Any]]:
        return [
            {
                "core_id": self.core(entry.core_id),
                "workload_id": entry.workload_id,
                "layer_name": self.index.made[entry.transfer_id].work.layer_name,
                "transfer_id": entry.transfer_id,
                **_corners(entry.box),
                "related_ofmap": list(entry.related_ofmap),
            }
            for entry in self.ir.dram_in
        ]

    def _leaves(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for out in self.ir.dram_out:
            box = weight_box(out.box, out.size) if out.type == "weight" else out.box
            size = weight_bytes(box) if out.type == "weight" else fmap_bytes(box, INT8)
            to = [{**self._target(item), "layer_name": out.layer_name} for item in out.destination]
            found.append(
                {
                    "transfer_id": out.transfer_id,
                    "type": out.type,
                    "size": size,
                    **_corners(box),
                    "destination": to,
                    "related_ifmap": list(out.related_ifmap),
                }
            )
        return found

    def _target(self, to: Destination) -> dict[str, Any]:
        if to.type == "DRAM":
            return {"type": "DRAM", "core_id": -1}
        return {"type": "core", "core_id": self.core(to.core_id), "workload_id": to.workload_id}

    def _workload(self, work: Workload) -> dict[str, Any]:
        items = self.placed[work.core]
        sizes = [fmap_bytes(piece.box, INT8) for piece in work.ofmap]
        read = work.ifmap[0].box if work.ifmap else work.box
        tile = {
            "ofmap_lower": list(work.box.lower),
            "ofmap_upper": list(work.box.upper),
            "ifmap_lower": list(read.lower),
            "ifmap_upper": list(read.upper),
            "tile_padding_tblr": [0, 0, 0, 0],
            "single_tile_time_pred": work.time,
        }
        content: dict[str, Any] = {
            "workload_id": work.workload_id,
            "layer_name": work.layer_name,
            "layer_type": "pe" if work.layer_type in _PE else "vp",
            "workload": [list(work.box.lower), list(work.box.upper)],
            "time": work.time,
            "tile_info": {"tile_num_0": tile},
            "tile_padding_tblr": [0, 0, 0, 0],
            "ifmap": [
                {
                    "transfer_id": [source.transfer_id for source, _box in item.sources],
                    "size": item.size,
                    **_int8(),
                    **_corners(item.box),
                }
                for item in items
                if item.reader == work.index
            ],
            "ofmap": [
                {
                    "transfer_id": piece.transfer_id,
                    "size": size,
                    **_corners(piece.box.within(work.box)),
                    "destination": [self._target(to) for to in piece.destination],
                }
                for piece, size in zip(work.ofmap, sizes, strict=True)
            ],
            "ofmap_size": sum(sizes),
            "buffer": [self._tensor(work, item) for item in items if item.first <= work.index <= item.last],
            "ring_buffer_info": [[0, self.buffersize]],
            "wl0_buffer": None,
        }
        ids = work.weight.transfer_id if work.weight else ()
        for item in items:
            if item.kind == "weight" and item.sources[0][0].transfer_id in ids:
                content["weight"] = {"transfer_id": list(ids), "size": item.size, **_corners(item.box)}
        return content

    def _tensor(self, work: Workload, item: Resident) -> dict[str, Any]:
        content: dict[str, Any] = {
            "tensor_id": item.number,
            "address": item.address,
            "size": item.size,
            **_int8(),
            **_corners(item.box),
            "type": {"input": "ifmap"}.get(item.kind, item.kind),
            "tensor_order": self.orders.get((work.core, item.number), self.count),
        }
        if item.kind == "store":
            last = len(self.ir.cores[work.core]) - 1
            sent = work.index > item.first or item.first == last
            return {**content, "type": "ofmap", "layer_name": item.layer_name, "start_send": sent}
        content["transfer_id"] = [source.transfer_id for source, _box in item.sources]
        content["newly_added"] = work.index == item.first
        pieces: list[dict[str, Any]] = []
        for source, box in item.sources:
            dram = source.type == "DRAM"
            entry: dict[str, Any] = {
                "core_id": -1 if dram else self.core(source.core_id),
                "type": source.type,
                "transfer_id": source.transfer_id,
                **_corners(box),
                "size": weight_bytes(box) if item.kind == "weight" else fmap_bytes(box, INT8),
            }
            if item.kind == "input":
                entry["layer_name"] = source.layer_name
            pieces.append(entry)
        content["source"] = pieces
        if item.kind == "weight":
            content["layer_name"] = item.layer_name
        elif item.reader == work.index:
            content["cur_wl_ifmap"] = True
        return content


def write(ir: IR, index: Index, placed: Mapping[int, Sequence[Resident]], buffersize: int) -> dict[str, Any]:
    """A schedule of dialect A."""
    return _Writer(ir, index, placed, buffersize).document()


def _corners(box: Box) -> dict[str, list[int]]:
    return {"lower": list(box.lower), "upper": list(box.upper)}


def _int8() -> dict[str, int]:
    return {"align": UNIT // INT8, "bitwidth": INT8}
