"""A small netlist with a queue and a ram on either side, and machines on it."""

import itertools

import numpy as np

from app.api.backend.front_end import describe, opened
from buda_emu.app import backend_api as api
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

SHAPE = (1, 64, 32)
_numbers = itertools.count()


def written(directory, content):
    """A file of its own for a netlist's text: machines are told apart by their netlist's path."""
    path = directory / f"net{next(_numbers)}.yaml"
    path.write_text(content)
    return path


def netlist(directory, df="Float32", *, inputs=2, entries=4, more="", out_df=None, arch="wormhole_b0", unread=None):
    """`a` (queue) and `c` (ram of two slots) from the host, copied to `o` (queue) and `w` (ram); 64 x 32 elements.

    `unread`: format of one more queue `x`, which nothing reads.
    """
    size = {"df": df, "mblock": (2, 1)}
    blocks = {"df": df, "mblock": (2, 1), "out_df": out_df}
    result = {**size, "df": out_df or df}
    content = text(
        [
            queue("a", entries=entries, more=more, **size),
            queue("c", kind="ram", entries=2, **size),
            queue("o", "n", entries=entries, **result),
            queue("w", "m", kind="ram", entries=2, **result),
            *([queue("x", df=unread, mblock=(2, 1))] if unread else []),
        ],
        [graph("g", op("n", "nop", ["a"], **blocks), op("m", "nop", ["c"], loc=(0, 1), **blocks), inputs=inputs)],
        [
            program(
                "p",
                "param: [$p_loop_count]",
                "staticvar: {$local: 0, $global: 0}",
                "var: {$c_zero: 0}",
                "loop: $p_loop_count",
                execute(
                    "g",
                    fifo_settings("a", "$global", "$local"),
                    ram_settings("c", prologue="true"),
                    ram_settings("w"),
                ),
                f"varinst: [$local, incwrap, {inputs}, {2 * entries}]",
                f"varinst: [$global, incwrap, {inputs}, {2 * entries}]",
                "endloop",
            )
        ],
        arch=arch,
    )
    return written(directory, content)


def machine(directory, kind="Golden", *, quantise=False, device="wormhole_b0", args="", **options):
    """An initialised backend on it, and its descriptors by name."""
    backend = opened(netlist(directory, **options), kind, quantise=quantise, device=device, args=args)
    return backend, {name: backend.get_queue_descriptor(name) for name in ("acowx" if "unread" in options else "acow")}


def entries(count, dtype=np.float32, shape=SHAPE):
    """Numbers that differ from each other and that every format of 7 bits holds."""
    size = count * int(np.prod(shape))
    return ((np.arange(size) * 37 % 101) - 50).astype(dtype).reshape(count, *shape)


def push(desc, array, word=None, *, timeout=0, ptr=-1, dim=4):
    """push_input of a numpy array."""
    return api.push_input(desc, describe(np.ascontiguousarray(array), word, dim), False, timeout, ptr)
