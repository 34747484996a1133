"""A product goes into the element-wise op that reads it, as the sum that begins a fused op (OPS 8): what is added to it
is there before, and the way between the two is saved."""

from collections.abc import Mapping
from dataclasses import replace

from buda_emu.compiler.fuse.readers import Readers, depths_of
from buda_emu.compiler.fuse.spreads import steps_of
from buda_emu.compiler.lower.schedule import MAX_INPUTS, MAX_INTERMEDIATES
from buda_emu.compiler.lower.tiles import SubOp, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import TargetOf, has_grid


def fuse_products(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """`p = matmul(x, w); y = add(p, r)` becomes one op, if nobody else reads p, and r does not come later than x; of
    two products that are added, both."""
    readers, depths, shown = Readers(tiles), depths_of(tiles), tiles.shown
    for op in list(tiles.ops.values()):
        if not (op.is_tile_by_tile and op.may_be_cut) or op.attrs.get("untilize"):
            continue
        if any(step.has("vector unit") for step in steps_of(op)):  # which takes longer than the way to it
            continue
        products = [product for product in _products(readers, op) if product.name not in shown]
        while products and _is_late(op, products, depths):
            products.remove(min(products, key=lambda product: _ready(product, depths)))
        made = _joined(op, products) if products else None
        if made is not None and has_grid(target_of(made), made):
            readers.put([*products, op], made)
    return tiles


def _products(readers: Readers, op: TileOp) -> list[TileOp]:
    """The plain products that an op alone reads, as they are."""
    read = (readers.only_source(op, place) for place in range(len(op.uses)))
    return [product for product in read if product is not None and _may_go_into(readers.tiles, product, op)]


def _may_go_into(tiles: TileGraph, product: TileOp, op: TileOp) -> bool:
    turns = any(("transpose",) in use.tms for use in product.uses)  # V038
    plain = product.type == "matmul" and product.grid is None and not turns and not set(product.attrs) - {"bias"}
    alike = (product.shape, product.precision, product.chip) == (op.shape, op.precision, op.chip)
    whole = all(use.source in tiles.constants for use in product.uses[2:])  # of a bias that is computed, row 0 is read
    return plain and alike and whole


def _ready(product: TileOp, depths: Mapping[str, int]) -> int:
    return max(depths.get(use.source, 0) for use in product.uses)


def _is_late(op: TileOp, products: list[TileOp], depths: Mapping[str, int]) -> bool:
    """Whether a product would wait for something else that the op reads."""
    names = {product.name for product in products}
    others = [depths.get(use.source, 0) for use in op.uses if use.source not in names]
    return max(others, default=0) > min(_ready(product, depths) for product in products)


def _joined(op: TileOp, products: list[TileOp]) -> TileOp | None:
    """The op with its products in it; None where buffers do not suffice."""
    names = {product.name: product for product in products}
    kept = [place for place, use in enumerate(op.uses) if use.source not in names]
    uses: list[Use] = [op.uses[place] for place in kept]
    words = {f"input{place}": f"input{number}" for number, place in enumerate(kept)}
    first, biases = list[SubOp](), list[SubOp]()
    for place, use in enumerate(op.uses):
        product = names.get(use.source)
        if product is None:
            continue
        inputs = [f"input{len(uses) + number}" for number in range(len(product.uses))]
        uses += product.uses
        words[f"input{place}"] = slot = f"intermed{op.intermediates + len(first)}"
        name = f"{product.name}.sum" if product.attrs.get("bias") else product.name
        first.append(SubOp(name, "matmul", tuple(inputs[:2]), slot, inner=product.inner))
        if product.attrs.get("bias"):  # a row of equal rows
            biases.append(SubOp(product.name, "add", (slot, inputs[2]), slot, pop=(slot,)))
    slots = {step.output for step in first}
    if len(uses) > MAX_INPUTS or op.intermediates + len(first) > MAX_INTERMEDIATES:
        return None
    renamed = [replace(step, inputs=tuple(words.get(name, name) for name in step.inputs)) for step in steps_of(op)]
    last = {name: number for number, step in enumerate(renamed) for name in step.inputs if name in slots}
    after = [
        replace(step, pop=(*step.pop, *(name for name in dict.fromkeys(step.inputs) if last.get(name) == number)))
        for number, step in enumerate(renamed)
    ]
    sources = tuple(source for item in (*products, op) for source in item.sources)
    return replace(op, type="fused_op", uses=uses, attrs={}, steps=(*first, *biases, *after), made_of=sources)
