"""Small Gemini schedules for tests: files of both dialects, and edits of them by JSON pointer."""

import copy
import json

from shared_files import ROOT

FOLDER = ROOT / "tests" / "foreign" / "gemini" / "schedules"
NAMES = tuple(
    sorted(path.stem for path in FOLDER.glob("*.json") if ".frontend" not in path.name and path.stem != "expected")
)
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def schedule(name):
    """A schedule of dialect A as decoded JSON, or the one of dialect B under the name `b`."""
    return dialect_b() if name == "b" else json.loads((FOLDER / f"{name}.json").read_text())


def network(name):
    """The front-end IR of a schedule of dialect A."""
    return json.loads((FOLDER / f"{name}.frontend.json").read_text())


def _place(document, pointer):
    *parents, last = pointer.split("/")
    for key in parents:
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document, int(last) if isinstance(document, list) and last != "-" else last


def put(pointer, value):
    """An edit: a value at a place, `-` after a list's last."""

    def edit(document):
        place, key = _place(document, pointer)
        if key == "-":
            place.append(copy.deepcopy(value))
        else:
            place[key] = copy.deepcopy(value)

    return edit


def drop(pointer):
    """An edit: take something away."""

    def edit(document):
        place, key = _place(document, pointer)
        del place[key]

    return edit


def edited(document, *edits):
    """A copy with edits."""
    result = copy.deepcopy(document)
    for edit in edits:
        edit(result)
    return result


def rules_of(document, frontend=None):
    """Ids of rules that are broken, with their severity."""
    from buda_emu import DocumentError
    from buda_emu.foreign import gemini

    try:
        found = gemini.load(document).check(frontend)
    except DocumentError as error:
        found = error.diagnostics
    return {(item.rule, item.severity) for item in found}


def _fmap(lower, upper):
    volume = 1
    for low, high in zip(lower, upper, strict=True):
        volume *= high - low + 1
    return {"lower": lower, "upper": upper, "size": 8 * volume}


def _entry(layer, workload, whole, sources):
    lower, upper = whole
    bits = _fmap(lower, upper)["size"]
    return {
        "type": "ifmap",
        "layer": layer,
        "workload_id": workload,
        "lower": lower,
        "upper": upper,
        "block": -(-bits // 8192),
        "transfer_id": [source["transfer_id"] for source in sources],
        "source": sources,
    }


def _source(number, core, layer, lower, upper):
    return {
        "id": core,
        "type": "core" if core else "DRAM",
        "transfer_id": number,
        "layer_name": layer,
        "channel": [lower[1], upper[1]],
        **_fmap(lower, upper),
    }


def _weights(layer, number, channels, bits):
    source = {"id": 0, "type": "DRAM", "transfer_id": number, "lower": 0, "upper": channels - 1, "size": bits}
    return {
        "type": "weight",
        "layer": layer,
        "lower": 0,
        "upper": channels - 1,
        "block": -(-bits // 8192),
        "transfer_id": [[number]],
        "source": [source],
    }


def _stream(layer, lower, upper):
    return {"type": "ofmap", "layer": layer, "block": 10, **_fmap(lower, upper)}


def dialect_b():
    """Two cores beside each other: a convolution by rows, an element-wise layer over both, a dense layer
    through DRAM."""
    top, bottom = ([0, 0, 0, 0], [0, 7, 1, 3]), ([0, 0, 2, 0], [0, 7, 3, 3])
    whole, dense = ([0, 0, 0, 0], [0, 7, 3, 3]), ([0, 0, 0, 0], [0, 9, 0, 0])
    inputs = ([0, 0, 0, 0], [0, 2, 2, 3]), ([0, 0, 1, 0], [0, 2, 3, 3])
    conv_bits, dense_bits = 8 * 8 * 27, 8 * 10 * 128

    def core(number, workload):
        return {"id": number, "type": "core", "workload_id": workload}

    def dram(layer):
        return {"id": 0, "type": "DRAM", "layer_name": layer}

    def conv(number, box, read, transfer, out):
        return {
            "workload_id": number,
            "layer_name": "c",
            "layer_type": "conv2d",
            "time": 300,
            "workload": list(box),
            "ifmap": {"lower": read[0], "upper": read[1], "transfer_id": [transfer], "max_workload_id": -1},
            "weight": {"lower": 0, "upper": 7, "transfer_id": [0]},
            "ofmap": [{"transfer_id": out, "destination": [core(1, 2)], **_fmap(*box)}],
            "ofmap_size": _fmap(*box)["size"],
            "buffer": [
                _weights("c", 0, 8, conv_bits),
                _stream("c", *box),
                _entry("c", number, read, [_source(transfer, 0, "input", *read)]),
            ],
        }

    both = [_source(4, 1, "c", *top), _source(5, 2, "c", *bottom)]
    wide = _entry("e", 2, whole, both)
    add = {
        "workload_id": 2,
        "layer_name": "e",
        "layer_type": "element_wise",
        "time": 50,
        "workload": list(whole),
        "ifmap": {"lower": whole[0], "upper": whole[1], "transfer_id": [4, 5], "max_workload_id": 1},
        "ofmap": [{"transfer_id": 6, "destination": [dram("f")], **_fmap(*whole)}],
        "ofmap_size": _fmap(*whole)["size"],
        "buffer": [wide, _stream("e", *whole)],
    }
    last = {
        "workload_id": 3,
        "layer_name": "f",
        "layer_type": "fc",
        "time": 40,
        "workload": list(dense),
        "ifmap": {"lower": whole[0], "upper": whole[1], "transfer_id": [7], "max_workload_id": 2},
        "weight": {"lower": 0, "upper": 9, "transfer_id": [3]},
        "ofmap": [{"transfer_id": 8, "destination": [dram("output")], **_fmap(*dense)}],
        "ofmap_size": _fmap(*dense)["size"],
        "buffer": [
            _weights("f", 3, 10, dense_bits),
            _stream("f", *dense),
            _entry("f", 3, whole, [_source(7, 0, "e", *whole)]),
        ],
    }
    first = conv(0, top, inputs[0], 1, 4)
    first["buffer"].append(copy.deepcopy(wide))

    def out(number, kind, layer, destination, content, related=()):
        return {
            "transfer_id": number,
            "type": kind,
            "layer_name": layer,
            "destination": destination,
            "related_ifmap": list(related),
            **content,
        }

    def arrives(core, workload, transfer, box, related):
        return {
            "core_id": core,
            "workload_id": workload,
            "transfer_id": transfer,
            "lower": box[0],
            "upper": box[1],
            "related_ofmap": related,
        }

    return {
        "-1": {
            "in": [
                arrives(1, 2, 6, whole, [7]),
                arrives(2, 3, 8, dense, []),
            ],
            "out": [
                out(0, "weight", "c", [core(1, 0), core(2, 1)], {"lower": 0, "upper": 7, "size": conv_bits}),
                out(1, "fmap", "c", [core(1, 0)], _fmap(*inputs[0])),
                out(2, "fmap", "c", [core(2, 1)], _fmap(*inputs[1])),
                out(3, "weight", "f", [core(2, 3)], {"lower": 0, "upper": 9, "size": dense_bits}),
                out(7, "fmap", "f", [core(2, 3)], _fmap(*whole), [6]),
            ],
        },
        "1": [first, add],
        "2": [conv(1, bottom, inputs[1], 2, 5), last],
        "top_batch_cut": 1,
        "xlen": 2,
        "ylen": 1,
    }
