"""Op types that work tile by tile, in a netlist: operands are rounded to their formats, the result to its own, and what
is between is the op's definition, for whatever an op type's declaration says."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.emulator import ops
from buda_emu.netlist.load import check_text
from buda_emu.spec.ops import OP_TYPES
from op_examples import TYPES
from op_examples.declared import is_covered
from op_examples.example import make_call, operand
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

# Operands in Float32 are Tf32 inside of a core, and a block format rounds where it is read again.
FORMATS = (("Float16_b", "Float32"), ("Float16", "Float16_b"), ("Bfp8_b", "Float16"))
TILES = (2, 3)  # rows and columns
INTEGERS = ("rounds to Int8", "integers beside floats")  # among operands, whatever the netlist says


def takes_floats(name):
    declaration = OP_TYPES[name]
    return is_covered(declaration) and not declaration.has("Ethernet") and not any(map(declaration.has, INTEGERS))


def tiled(array):
    """[t, rows, columns] as [1, t, R, C, 32, 32]."""
    t, rows, columns = array.shape
    return array.reshape(1, t, rows // 32, 32, columns // 32, 32).transpose(0, 1, 2, 4, 3, 5)


def rounded(df, tiles):
    """Tiles [1, t, R, C, 32, 32] as the format holds them."""
    return Bits.encode(df, np.ascontiguousarray(tiles).reshape(1, -1, 1024)).values().reshape(tiles.shape)


def drawn(declaration, place, shape):
    values = np.random.default_rng(place).normal(0, 2, shape).astype(np.float32)
    return np.abs(values) + np.float32(0.25) if declaration.has("takes positive numbers") else values


@pytest.mark.parametrize("broadcast", ["", "r", "c"])
@pytest.mark.parametrize(("df", "out_df"), FORMATS)
@pytest.mark.parametrize("name", [name for name in TYPES if takes_floats(name)])
def test_operands_and_results_are_rounded_to_their_formats(name, df, out_df, broadcast):
    declaration = OP_TYPES[name]
    count = declaration.inputs[0]
    last = count - 1
    dims = [TILES] * count
    tms = ""
    if broadcast:
        times = TILES["rc".index(broadcast)]
        dims[last] = (1, TILES[1]) if broadcast == "r" else (TILES[0], 1)
        tms = f", input_{last}_tms: [broadcast: {{{broadcast}: {times}}}]"
    inputs = [f"x{place}" for place in range(count)]
    source = text(
        [
            *(queue(one, df=df, mblock=dims[place], entries=1) for place, one in enumerate(inputs)),
            queue("y", "n", df=out_df, mblock=TILES, entries=1),
        ],
        [graph("g", op("n", name, inputs, df=df, out_df=out_df, mblock=TILES, more=tms))],
        [program("p", "var: {$c_zero: 0}", execute("g", *map(fifo_settings, inputs)))],
    )
    netlist = check_text(source, "net.yaml").netlist
    assert netlist is not None
    emulator = be.Emulator(netlist, precision="format")
    operands = []
    for place, one in enumerate(inputs):
        rows, columns = dims[place]
        array = drawn(declaration, place, (1, rows * 32, columns * 32))
        emulator.push(one, array[None])
        operands.append(np.broadcast_to(rounded(df, tiled(array)), (1, 1, *TILES, 32, 32)))
    emulator.run("p")
    call = make_call(name, [operand((1, *TILES))] * count, vector="rc")
    expected = rounded(out_df, ops.implementation(name).reference(call, operands))
    np.testing.assert_array_equal(tiled(emulator.pop("y", 1)[0]), expected)
