"""Small netlists for tests, written as text: one-tile queues, nop, add and matmul ops."""

from itertools import count

_HEAD = "devices: {arch: ARCH}\n"
_ADDRESSES = count(0x10000000, 0x100000)


def queue(
    name, source="HOST", *, kind="queue", entries=4, df="Float32", t=1, mblock=(1, 1), ublock=(1, 1), device=0, more=""
):
    """One line of `queues`."""
    address = next(_ADDRESSES) % 0x40000000 + 0x10000000
    return (
        f"  {name}: {{input: {source}, type: {kind}, entries: {entries}, grid_size: [1, 1], t: {t}, "
        f"mblock: {list(mblock)}, ublock: {list(ublock)}, df: {df}, target_device: {device}, "
        f"loc: dram, dram: [[0, {address:#x}]]{more}}}\n"
    )


def op(name, kind, inputs, *, loc=(0, 0), t=1, mblock=(1, 1), ublock=(1, 1), df="Float32", out_df=None, more=""):
    """One line of a graph. `df` is the format of every input, and of the result unless `out_df` is given."""
    formats = ", ".join([df] * len(inputs))
    out_df = out_df or df
    intermed = "Float16_b" if out_df.startswith(("Bfp4", "Bfp2")) else out_df
    return (
        f"    {name}: {{type: {kind}, grid_loc: {list(loc)}, grid_size: [1, 1], inputs: [{', '.join(inputs)}], t: {t}, "
        f"mblock: {list(mblock)}, ublock: {list(ublock)}, in_df: [{formats}], out_df: {out_df}, "
        f"intermed_df: {intermed}, acc_df: {intermed}, ublock_order: r, buf_size_mb: 2, math_fidelity: HiFi4{more}}}\n"
    )


def graph(name, *ops, inputs=1, device=0):
    """A graph with its ops."""
    return f"  {name}:\n    target_device: {device}\n    input_count: {inputs}\n" + "".join(ops)


def fifo_settings(name, rd="$c_zero", local="$c_zero", *, prologue="false", more=""):
    """queue_settings of a `type: queue`."""
    flags = f"prologue: {prologue}, epilogue: false, zero: false"
    return f"{name}: {{{flags}, rd_ptr_local: {local}, rd_ptr_global: {rd}{more}}}"


def ram_settings(name, rd="$c_zero", wr="$c_zero", *, prologue="false", epilogue="false", zero="false", more=""):
    """queue_settings of a ram."""
    flags = f"prologue: {prologue}, epilogue: {epilogue}, zero: {zero}"
    return f"{name}: {{{flags}, rd_ptr_global: {rd}, wr_ptr_global: {wr}{more}}}"


def execute(graph_name, *settings):
    """An execute instruction."""
    return f"execute: {{graph_name: {graph_name}, queue_settings: {{{', '.join(settings)}}}}}"


def program(name, *instructions):
    """A program."""
    return f"  - {name}:\n" + "".join(f"    - {instruction}\n" for instruction in instructions)


def text(queues, graphs, programs, *, arch="wormhole_b0", fused=""):
    """The whole netlist."""
    body = "queues:\n" + "".join(queues) + "graphs:\n" + "".join(graphs)
    return _HEAD.replace("ARCH", arch) + body + ("programs:\n" + "".join(programs)) + fused


def endless():
    """A netlist that runs for hours: matmuls of a ram's slot, in as many rounds as the limit of instructions allows."""
    block = {"mblock": (8, 8), "ublock": (1, 1)}
    return text(
        [queue("a", kind="ram", entries=2, **block), queue("o", "n", kind="ram", entries=2, **block)],
        [graph("g", op("n", "matmul", ["a", "a"], **block, more=", attributes: {m_k: 8, u_kt: 1}"))],
        [
            program(
                "p", "var: {$c_zero: 0}", "loop: 3000000", execute("g", ram_settings("a"), ram_settings("o")), "endloop"
            )
        ],
    )
