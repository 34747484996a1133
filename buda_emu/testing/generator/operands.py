"""Operands: a shape that an op asks for, from a value of the graph or a new queue, through TMs and padding (NETLIST
1.6, OPS 7)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from buda_emu.netlist.model import Pad, Queue, Tm
from buda_emu.netlist.rules.ops.formats import A_FORMATS, B_FORMATS
from buda_emu.netlist.sourced import evolve
from buda_emu.spec.archs import Arch
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.formats import FORMATS, is_integer
from buda_emu.testing.generator.draft import DraftTensor, Formats, NetlistDraft, NoRoomError, Operand

_MOST_STEPS = 2  # TMs of an operand beside its padding


Source = Literal["any", "own", "own stream", "flat"]
"""The source of an operand: any value that fits; a queue for this op alone, whose content only it understands (row
numbers, encodings), as a constant or a stream; a stream that is stored row by row."""


def draw_operand(
    draft: NetlistDraft,
    shape: Shape,
    formats: Sequence[str],
    *,
    shaped: bool = True,
    transposed: bool = False,
    positive: bool = False,
    source: Source = "any",
) -> Operand:
    """Return an operand of `shape` (t, tile rows, tile columns) in one of `formats`: a value of the open graph, or a
    new queue that the host fills. With `shaped`, TMs and padding may make it from another shape, with `transposed` a
    transpose, too. `positive`: no element is below zero. Raises NoRoomError where the value would be too large."""
    draw = draft.draw
    tms: list[Tm] = []
    pad = Pad()
    unpad = Pad()
    if shaped:
        shape, pad, tms = _draw_padding(draft, shape)
    if shaped:
        shape = _draw_tms(draft, shape, tms, transposed)
    if shaped and draw.chance(5):
        unpad = Pad(rt=draw.integer(0, 1), ct=draw.integer(0, 1))
        shape = (shape[0], shape[1] + unpad.rt, shape[2] + unpad.ct)
    if shape[0] * shape[1] * shape[2] > 2 * draft.most_tiles:
        raise NoRoomError
    values = _matching_values(draft, shape, formats, positive, source)
    if values and draw.chance(75):
        value = draw.pick(values)
    else:
        value = _add_input_queue(draft, shape, draw.pick(formats), source)
        if not source.startswith("own"):
            draft.graph.values.append(value)
    return Operand(value, tuple(tms), unpad, pad)


def _draw_tms(draft: NetlistDraft, shape: Shape, tms: list[Tm], transposed: bool) -> Shape:
    """Draw TMs, up to _MOST_STEPS, and insert them before those in `tms`; with `transposed` at most one transpose is
    among all. Return the shape from which they make `shape`."""
    draw = draft.draw
    for _ in range(draw.integer(0, _MOST_STEPS)):
        may_transpose = transposed and draft.tile == FULL_TILE and not any(tm.name == "transpose" for tm in tms)
        choices = list(_tms_that_make(draft, shape, may_transpose))
        if choices:
            tm, shape = draw.pick(choices)
            tms.insert(0, tm)
    return shape


def _draw_padding(draft: NetlistDraft, shape: Shape) -> tuple[Shape, Pad, list[Tm]]:
    """Draw now and then a padding to `shape`, as the operand's padding or as its last TM. Return the shape before it,
    the padding, and the TMs."""
    draw = draft.draw
    if not draw.chance(10) or max(shape[1:]) <= 1:
        return shape, Pad(), []
    rows, cols = (draw.integer(0, size - 1) for size in shape[1:])
    if not rows and not cols:
        return shape, Pad(), []
    pad = Pad(rt=rows, ct=cols, value=draw.pick((0.0, 1.0, 0.25)))
    before = (shape[0], shape[1] - rows, shape[2] - cols)
    if draw.chance(30):  # the same as the last of the TMs (OPS 7.3)
        return before, Pad(), [Tm("pad", (pad.rt, pad.ct, pad.value))]
    return before, pad, []


def _matching_values(
    draft: NetlistDraft, shape: Shape, formats: Sequence[str], positive: bool, source: Source
) -> list[DraftTensor]:
    """Return the values of the open graph that can be the operand: of the shape, in one of the formats, positive if
    that is asked for, and of the source. None for a source of the op's own."""
    if source.startswith("own"):
        return []
    flat = source == "flat"
    values = [value for value in draft.graph.values if value.shape == shape and value.df in formats]
    return [value for value in values if value.flat == flat and (value.positive or not positive)]


def _tms_that_make(draft: NetlistDraft, shape: Shape, transposed: bool) -> Iterator[tuple[Tm, Shape]]:
    """Yield TMs that can make `shape`, each with the shape that it makes it from. `transposed` allows a transpose among
    them."""
    t, rows, cols = shape
    divisor = draft.draw.divisor
    if t > 1:
        yield Tm("broadcast", ("z", t)), (1, rows, cols)
        part = divisor(t)
        if part > 1:
            yield Tm("hslice", (part,)), (t // part, rows, cols * part)
            yield Tm("vslice", (part,)), (t // part, rows * part, cols)
    if rows > 1:
        yield Tm("broadcast", ("r", rows)), (t, 1, cols)
        part = divisor(rows)
        if part > 1:
            yield Tm("vstack", (part,)), (t * part, rows // part, cols)
    if cols > 1:
        yield Tm("broadcast", ("c", cols)), (t, rows, 1)
        part = divisor(cols)
        if part > 1:
            yield Tm("hstack", (part,)), (t * part, rows, cols // part)
    if transposed:
        yield Tm("transpose"), (t, cols, rows)


def _add_input_queue(draft: NetlistDraft, shape: Shape, df: str, source: Source) -> DraftTensor:
    """Add a queue or ram that the host fills, with a stream of inputs or a constant as `source` allows, and return it
    as a value."""
    draw = draft.draw
    layout = "flat" if source == "flat" else "tilized"
    blocking = _draw_queue_blocking(draft, shape, one_core=source == "flat")
    if source in ("any", "own") and draw.chance(50):
        queue = draft.queue("c", blocking, df, kind=draw.pick(("queue", "ram")), entries=1, layout=layout)
        draft.constants.add(queue.name)
        if queue.is_ram and source == "any" and draw.sometimes(15, "alias", "several views"):
            queue = _add_view(draft, queue)
        return value_of(queue)
    kind = "queue"
    if source == "any" and draw.chance(8):
        kind = "ram"
    queue = draft.queue("x", blocking, df, kind=kind, entries=draft.graph.input_count, layout=layout)
    if kind == "ram":
        draft.stepped.add(queue.name)
    elif source == "any" and draw.chance(5):
        draft.strided.add(queue.name)
    return value_of(queue)


def _draw_queue_blocking(draft: NetlistDraft, shape: Shape, *, one_core: bool) -> Blocking:
    """Draw how a queue cuts a shape (t, tile rows, tile columns), with `one_core` into one buffer."""
    draw = draft.draw
    t, rows, cols = shape
    down = 1
    across = 1
    if not one_core:
        down = draw.divisor(rows, 2)
        across = draw.divisor(cols, 2)
    high = draw.divisor(rows // down)
    wide = draw.divisor(cols // across)
    return Blocking(
        grid_size=(down, across),
        t=t,
        mblock=(rows // down // high, cols // across // wide),
        ublock=(high, wide),
        ublock_order=draw.pick("rc"),
    )


def _add_view(draft: NetlistDraft, base: Queue) -> Queue:
    """Add another ram on the same bytes as `base`, with the opposite order of ublocks (NETLIST 1.10, 4.5), and return
    it."""
    name = draft.name("view")
    order = "r"
    if base.blocking.ublock_order == "r":
        order = "c"
    view = evolve(
        base, name=name, written_name=name, alias=base.name, blocking=replace(base.blocking, ublock_order=order)
    )
    draft.document.queues[view.name] = view
    draft.constants.add(view.name)
    return view


def value_of(queue: Queue) -> DraftTensor:
    """Return a queue of the netlist as a value that ops may read."""
    return DraftTensor(
        queue.name,
        queue.blocking.shape,
        queue.df,
        is_queue=True,
        flat=queue.layout == "flat",
        positive=queue.host_fed and not is_integer(queue.df),
    )


def _formats_of_family(family: str) -> tuple[str, ...]:
    """Return the floating-point formats of a family; Fp8_e4m3, which has none, is packed like Lf8 of family a."""
    floats = [spec for spec in FORMATS.values() if spec.netlist_legal and spec.kind in ("float", "block")]
    return tuple(spec.name for spec in floats if (spec.family or "a") == family)


_OPERANDS: Final = {"a": _formats_of_family("a"), "b": _formats_of_family("b")}
_SUMS: Final = {"b": ("Float16_b", "Float32", "Bfp8_b"), "a": ("Float16", "Bfp8")}


def operand_formats(draft: NetlistDraft) -> tuple[str, ...]:
    """Return the formats that operands of the open graph may have; 4-bit exponents are blackhole's (FORMATS 6.5)."""
    return _on_arch(_OPERANDS[draft.graph.family], draft.arch)


def _on_arch(names: tuple[str, ...], arch: Arch) -> tuple[str, ...]:
    """Return the formats that an architecture has: only blackhole has those with 4-bit exponents (FORMATS 6.5)."""
    if arch.name == "blackhole":
        return names
    return tuple(name for name in names if FORMATS[name].family)


def draw_formats(
    draft: NetlistDraft, *, out: tuple[str, ...] = (), sums: bool = False, gradient: bool = False
) -> Formats:
    """Draw the formats of an op of the open graph; its result has one of `out` if any are given. `sums`: the op has
    partial sums between blocks. `gradient`: it adds to its previous result."""
    draw = draft.draw
    family = draft.graph.family
    arch = draft.arch
    acc = draw.pick(_accumulator_choices(family, arch))
    legal = out or operand_formats(draft)
    if sums and arch.name == "grayskull":  # V090
        legal = [name for name in legal if name in (*A_FORMATS, *B_FORMATS, "Float32")]
    result = draw.pick(legal)
    if gradient:
        result = _draw_gradient_format(draft, acc)
        return Formats(result, result, acc)
    between = draw.pick(_SUMS[family] if sums else (result, *_SUMS[family]))
    if not out and not sums and draw.sometimes(8, "other family"):  # only the packer knows of it (DEVICE_NUMERICS 4.1)
        result = draw.pick(_formats_of_other_family(draft))
        between = _SUMS[family][0]
    if sums:
        between = _legal_sums(between, result, acc, draft)
    return Formats(result, between, acc)


def _draw_gradient_format(draft: NetlistDraft, acc: str) -> str:
    """Draw the format in which a gradient op adds to its previous result."""
    if acc == "Float32" and draft.draw.chance(60):
        return "Float32"
    return draft.draw.pick(_SUMS[draft.graph.family])


def _legal_sums(between: str, result: str, acc: str, draft: NetlistDraft) -> str:
    """Return a format that partial sums may have: `between` if it is legal. `result` and `acc` are the formats of the
    result and of Dst."""
    family = draft.graph.family
    if acc == "Float32" and family == "b":
        return "Float32"
    if draft.arch.name != "grayskull":
        return between
    if result in _SUMS[family]:
        return result
    return _SUMS[family][0]


def _formats_of_other_family(draft: NetlistDraft) -> tuple[str, ...]:
    """Return formats of the family that no op of the open graph reads, as results that only the packer converts to;
    Grayskull does so for 16-bit results only."""
    names = _OPERANDS["a" if draft.graph.family == "b" else "b"]
    if draft.arch.name == "grayskull":
        return tuple(name for name in names if name in ("Float16", "Float16_b"))
    return _on_arch(names, draft.arch)


def _accumulator_choices(family: str, arch: Arch) -> tuple[str, ...]:
    """Return the formats of Dst from which one is drawn, "" for the default; the most usual one is there twice."""
    usual = _SUMS[family][0]
    if arch.name == "grayskull":
        return (usual, usual, "")
    return (usual, usual, "", "Float32")


def tiles_in_ublock(draft: NetlistDraft, formats: Formats) -> int:
    """Return the largest number of tiles of a ublock, so that it fits half of dest with the accumulator that was drawn
    (V040)."""
    return draft.arch.dest_tiles // (2 if formats.acc in ("Float32", "Int32") else 1)
