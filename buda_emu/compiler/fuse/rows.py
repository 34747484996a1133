"""Fusion of computations by rows, with the maxima and sums of the rows, into one op; and of products with the ops that
read them.
"""

from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from buda_emu.compiler.fuse.chains import MOST, Readers, depths_of, is_elementwise
from buda_emu.compiler.fuse.columns import (
    SPREADING,
    equal_columns,
    is_equal,
    spreads_column,
    steps_of,
    with_equal_columns,
)
from buda_emu.compiler.lower.schedule import MAX_INPUTS, MAX_INTERMEDIATES, Part, schedule_parts, schedules
from buda_emu.compiler.lower.tiles import SubOp, TileAttributes, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import MOST_SHARED_OPERANDS, TargetOf, has_grid

_TIMES: Final = 2
"""Largest number of fused ops that each compute the same value: the parts of a softmax over two tensors."""


def fuse_rows(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """Fuse computations by rows in the graph itself, and return it: `m = reduce(x); e = exp(subtract(x, m)); s =
    matmul(e, ones); y = multiply(e, reciprocal(s))` becomes one op, if nothing else reads the values between. Two such
    ops compute a value that both need separately."""
    order = {name: number for number, name in enumerate(tiles.ops)}
    rows = _Rows(tiles, Readers(tiles), target_of, order, tiles.shown, with_equal_columns(tiles))
    for group in rows.groups():
        fused_ops = [rows.fuse(root, members) for root, members in group.items()]
        if None not in fused_ops:
            rows.put([op for op in fused_ops if op is not None], group)
    return tiles


@dataclass(frozen=True, slots=True)
class _Rows:
    """The graph of tiles with what the fusion looks up. `order`: number of each op; `shown`: ops that the host or a ram
    reads; `equal`: ops whose columns are all the same."""

    tiles: TileGraph
    readers: Readers
    target_of: TargetOf
    order: Mapping[str, int]
    shown: frozenset[str]
    equal: Set[str]

    # ------------------------------------------------------------------------------------------------------- groups
    def groups(self) -> list[dict[str, list[str]]]:
        """Return groups of future fused ops: each maps the name of the last op to all ops that go into it. Fused ops
        that share some ops are one group. Groups without a maximum or a sum of rows are left out."""
        by_row = {op.name for op in self.tiles.ops.values() if self._is_by_row(op)}
        ends = {name for name in by_row if not self._stays_inside(name, by_row)}
        depths = depths_of(self.tiles, by_row)  # products and moves
        while True:
            cones_and_rest = {name: self._collect_cone(name, by_row, ends) for name in self.tiles.ops if name in ends}
            cones = {name: cone for name, (cone, _) in cones_and_rest.items()}
            new_ends = self._values_to_pass_on(cones).union(
                *(self._ops_ready_early(cone, depths) for cone in cones.values())
            )
            new_ends = new_ends.union(*(before for _, before in cones_and_rest.values())) - ends
            if not new_ends:
                break
            ends |= new_ends
        return [group for group in _join_cones(cones) if self._sums_any(group)]

    def _sums_any(self, group: Mapping[str, Sequence[str]]) -> bool:
        """Return whether an op of a group computes a maximum or a sum of rows."""
        return any(self._computes_row_sums(name) for name in chain.from_iterable(group.values()))

    def _values_to_pass_on(self, cones: Mapping[str, list[str]]) -> set[str]:
        """Return the values that a separate op should pass on instead of being computed again: those that more than two
        fused ops read, the only value that two share, and those that are dear."""
        owners: dict[str, list[str]] = {}
        for root, cone in cones.items():
            for name in cone:
                owners.setdefault(name, []).append(root)
        passed_on = {name for name, roots in owners.items() if len(roots) > _TIMES}
        shared: dict[tuple[str, ...], set[str]] = {}
        for name, roots in owners.items():
            if len(roots) == _TIMES and any(owners[reader] != roots for reader, _ in self.readers.of(name)):
                shared.setdefault(tuple(roots), set()).add(name)
        dear = (name for name in owners if self._is_dear(name, cones))
        return passed_on.union(*(names for names in shared.values() if len(names) == 1), dear)

    def _is_dear(self, name: str, ends: Container[str]) -> bool:
        """Return whether a separate op should compute the op `name` once: its result is wider than a block and read
        more than once, and computing it again for each reader (`again`) takes more than an op on one tensor. `ends`:
        values that separate ops compute anyway."""
        op = self.tiles.ops[name]
        tiles = self.tiles
        if op.shape[2] <= self.target_of(op).dest_tiles or len({reader for reader, _ in self.readers.of(name)}) < 2:
            return False
        computed = [use.source for use in op.uses if use.source not in tiles.constants]
        wide = [source for source in computed if tiles.shape_of(source)[2] > 1]
        return len(wide) > 1 or any(
            source not in ends and self._is_by_row(tiles.ops[source]) and not self._is_dear(source, ends)
            for source in wide
            if source in tiles.ops
        )

    def _ops_ready_early(self, cone: list[str], depths: Mapping[str, int]) -> set[str]:
        """Return the ops of a cone with sums that are ready before another operand of their reader is: a separate op
        computes them meanwhile. `depths`: when values from outside are ready, as a number of ops."""
        early = set[str]()
        latest = dict[str, int]()
        sums = dict[str, bool]()
        for name in cone:
            sources = [use.source for use in self.tiles.ops[name].uses]
            inner = [source for source in sources if source in latest]
            when = {source: latest.get(source, depths.get(source, 0)) for source in sources}
            plain = max((when[source] for source in sources if not sums.get(source)), default=0)
            early.update(source for source in inner if sums[source] and plain > latest[source])
            latest[name] = max(when.values(), default=0)
            sums[name] = self._computes_row_sums(name) or any(sums[source] for source in inner)
        return early

    def _is_by_row(self, op: TileOp) -> bool:
        """Return whether an op may be part of a computation by rows."""
        return is_elementwise(op) or self._computes_row_sums(op.name) or spreads_column(self.tiles, op)

    def _computes_row_sums(self, name: str) -> bool:
        """Return whether an op computes the largest number of each row, or the sum of each row times a constant."""
        op = self.tiles.ops[name]
        if op.has("reduces"):
            return op.attrs == {"dim": "c", "type": "max"}
        if op.type != "matmul" or op.shape[2] != 1 or set(op.attrs) - {"bias"} or spreads_column(self.tiles, op):
            return False
        factors_are_equal = all(self._has_equal_columns(use) for use in op.uses[1:])
        return factors_are_equal and self.tiles.shape_of(op.uses[1].source)[0] == 1

    def _has_equal_columns(self, use: Use) -> bool:
        """Return whether an operand is a constant of equal columns that is only repeated for slices or rows."""
        constant = self.tiles.constants.get(use.source)
        if constant is None or any(tm[:2] not in (("broadcast", "z"), ("broadcast", "r")) for tm in use.tms):
            return False
        return equal_columns(constant)

    def _stays_inside(self, name: str, by_row: set[str]) -> bool:
        """Return whether all readers of an op are computations by rows on the same rows."""
        op = self.tiles.ops[name]
        tiles = self.tiles
        uses = self.readers.of(name)
        return (
            bool(uses)
            and name not in self.shown
            and all(reader in by_row and self._is_inner(tiles.ops[reader], place, op) for reader, place in uses)
        )

    def _is_inner(self, reader: TileOp, place: int, source: TileOp) -> bool:
        """Return whether operand `place` of the reader, which the op `source` computes, may stay within a fused op: it
        is read unchanged, or its one column is repeated."""
        if reader.program != source.program or reader.shape[:2] != source.shape[:2]:
            return False
        tms = reader.uses[place].tms
        columns = source.shape[2]
        if self._computes_row_sums(reader.name):
            return place == 0 and not tms
        return not tms or (columns == 1 and tms == (("broadcast", "c", reader.shape[2]),))

    def _collect_cone(self, root: str, by_row: set[str], ends: set[str]) -> tuple[list[str], list[str]]:
        """Return the op `root` with the ops in front of it that stay inside a fused op, operands first, but no more
        than one fused op has; and the ops in front of these that were left out. Only ops in `by_row` join, and none in
        `ends`."""
        cone = {root}
        pending = [root]
        while pending and len(cone) < MOST:
            op = self.tiles.ops[pending.pop()]
            inner = (
                use.source
                for place, use in enumerate(op.uses)
                if use.source in by_row
                and use.source not in ends
                and self._is_inner(op, place, self.tiles.ops[use.source])
            )
            new = [name for name in dict.fromkeys(inner) if name not in cone]
            cone.update(new)
            pending += new
        return sorted(cone.difference(pending) | {root}, key=self.order.__getitem__), pending

    # ---------------------------------------------------------------------------------------------------- fused ops
    def fuse(self, root: str, members: list[str]) -> TileOp | None:
        """Return one op for all members, which is not put into the graph; None if the device takes no such op."""
        root_op = self.tiles.ops[root]
        parts = _Parts.of(self, members)
        if parts is None or not is_elementwise(root_op) or not parts.may_end(root):
            return None
        sources = tuple(chain.from_iterable(op.sources for name, op in self.tiles.ops.items() if name in members))
        target = self.target_of(replace(root_op, made_of=sources))
        schedule = schedule_parts(again(parts.halve(root), target.dest_tiles), root, target.arch.name)
        if schedule is None:
            return None
        steps, uses = schedule
        fused_op = replace(root_op, type="fused_op", uses=uses, attrs={}, steps=steps, made_of=sources)
        if not _has_legal_operands(fused_op) or not _is_in_step(steps, root_op.shape[2], target.dest_tiles):
            return None
        return fused_op if has_grid(target, fused_op) else None

    def put(self, fused_ops: list[TileOp], group: Mapping[str, list[str]]) -> None:
        """Put fused ops in the places of the last ops of a group, and remove the other ops of the group."""
        for op in fused_ops:
            self.readers.put([self.tiles.ops[op.name]], op)
        absorbed = set(chain.from_iterable(group.values())) - set(group)
        for name in [name for name in reversed(self.tiles.ops) if name in absorbed]:
            self.readers.drop(self.tiles.ops[name])

    def operand(self, op: TileOp, place: int, members: list[str]) -> str | Use:
        """Return operand `place` of an op as its fused op reads it: the name of a member that computes it inside, or
        the use of a tensor from outside."""
        use = op.uses[place]
        inner = use.source in members and self._is_inner(op, place, self.tiles.ops[use.source])
        if inner:
            return use.source
        return use


def _join_cones(cones: Mapping[str, list[str]]) -> list[dict[str, list[str]]]:
    """Return the cones (ops that go into one fused op, by the name of the last) in groups that share ops."""
    group_of: dict[str, dict[str, list[str]]] = {}
    for root, cone in cones.items():
        group = {root: cone}
        for name in cone:
            group |= group_of.get(name, {})
        for members in group.values():
            group_of.update(dict.fromkeys(members, group))
    return list({id(group): group for group in group_of.values()}.values())


def _is_in_step(steps: tuple[SubOp, ...], columns: int, dest: int) -> bool:
    """Return whether the fused op can run block by block: in each schedule all values wider than `dest` tiles, which
    take more than one block, are equally wide (OPS 8.3), and values of the vector unit have one block at most, because
    columns are not divided over cores, and the vector unit takes longest for them. `columns`: the width of the fused
    op."""
    if any(step.has("vector unit") and (step.columns or columns) > dest for step in steps):
        return False
    wide = [{step.columns or columns for step in schedule if not step.inner} for schedule in schedules(steps)]
    return all(max(widths, default=1) <= dest or len(widths - {1}) == 1 for widths in wide)


def again(parts: Mapping[str, Part], dest: int) -> dict[str, Part]:
    """Return the parts with copies for values that are wider than one block, `dest` tiles, and read more than once:
    each reader computes its own, because no buffer keeps them while a sum is taken."""
    copies: dict[str, Part] = {}
    read: set[str] = set()

    def name_for_reader(name: str) -> str:
        """Return the name under which the next reader finds a part: the first reader, and every reader of a part that
        fits a block or has an inner loop, takes the part itself, others a copy of their own."""
        part = parts[name]
        if part.inner or part.columns <= dest or name not in read:
            read.add(name)
            return name
        number = sum(other.startswith(f"{name}.again") for other in copies)
        copy = f"{name}.again{number or ''}"
        copies[copy] = replace(part, name=copy, operands=_operands_for_reader(part.operands))
        return copy

    def _operands_for_reader(operands: tuple[str | Use, ...]) -> tuple[str | Use, ...]:
        """Return operands with parts renamed for this reader; two operands that are one part stay one."""
        names = {operand: name_for_reader(operand) for operand in dict.fromkeys(operands) if isinstance(operand, str)}
        return tuple(names[operand] if isinstance(operand, str) else operand for operand in operands)

    for name, part in parts.items():
        copies[name] = replace(part, operands=_operands_for_reader(part.operands))
    return copies


# ------------------------------------------------------------------------------------------------------------- parts
@dataclass(slots=True)
class _Parts:
    """Future sub-ops by name. `same`: ops that only spread an operand, with that operand; `numbers`: values with one
    number for each row, right in column 0 at least; `equal`: values whose columns are all the same."""

    rows: _Rows
    parts: dict[str, Part]
    same: dict[str, str | Use]
    numbers: set[str | Use]
    equal: set[str | Use]

    @staticmethod
    def of(rows: _Rows, members: list[str]) -> "_Parts | None":
        """Return the parts of the members; None if one of them cannot be a sub-op."""
        parts = _Parts(rows, {}, {}, set(), set())
        if all(parts._add(rows.tiles.ops[name], members) for name in members):
            return parts
        return None

    def _add(self, op: TileOp, members: list[str]) -> bool:
        """Add the parts of an op, one of the `members` of the fused op, and return whether it can be a sub-op. What was
        added before a refusal stays."""
        operands = [self._operand(op, place, members) for place in range(len(op.uses))]
        if spreads_column(self.rows.tiles, op):  # who reads it spreads it
            self.same[op.name] = operands[0]
            self.numbers.add(operands[0])
            return True
        if op.has("reduces"):
            return operands[0] not in self.numbers and self._add_reduction(
                op, (operands[0],), {"dim": "c", "type": "max"}
            )
        if op.type == "matmul":
            return operands[0] not in self.numbers and self._add_product(op, operands)
        return op.type != "dropout" and self._add_elementwise(op, operands)

    def _operand(self, op: TileOp, place: int, members: list[str]) -> str | Use:
        """Return operand `place` of an op as a part or a use, and note whether it is a number for each row or has equal
        columns."""
        operand = self.rows.operand(op, place, members)
        if isinstance(operand, Use):
            if is_equal(self.rows.tiles, operand, self.rows.equal):
                self.equal.add(operand)
            return operand
        same = self.same.get(operand, operand)
        if isinstance(same, Use):
            same = replace(same, tms=same.tms + op.uses[place].tms)
            self.numbers.add(same)
        return same

    def _add_reduction(self, op: TileOp, operands: tuple[str | Use, ...], attrs: TileAttributes) -> bool:
        """Add an op that reduces each row to one number, a maximum or a product, as a part. Return True, for `_add`."""
        self.parts[op.name] = Part(op.name, op.type, operands, attrs, columns=1, inner=op.inner)
        self.numbers.add(op.name)
        return True

    def _add_product(self, op: TileOp, operands: list[str | Use]) -> bool:
        """Add the part of a sum of rows, and one for the addition of its bias. Return True, for `_add`."""
        self._add_reduction(op, tuple(operands[:2]), {})
        self.equal.add(op.name)
        if op.attrs.get("bias"):
            inner = f"{op.name}.sum"
            self.parts[inner] = replace(self.parts[op.name], name=inner)
            self.parts[op.name] = Part(op.name, "add", (inner, operands[2]), columns=1)
        return True

    def _add_elementwise(self, op: TileOp, operands: list[str | Use]) -> bool:
        """Add an element-wise op, and return whether its operands are as wide as its result or can be spread."""
        part = replace(Part.of(op, ()), operands=tuple(operands), columns=op.shape[2])
        if op.type == "square":  # by the math unit, which is quicker than the vector unit
            part = replace(part, type="multiply", operands=(*part.operands, *part.operands))
        if op.shape[2] == 1 and all(operand in self.numbers or operand in self.equal for operand in operands):
            self.numbers.add(op.name)
            if all(operand in self.equal for operand in operands):
                self.equal.add(op.name)
        elif not self.numbers.isdisjoint(operands):
            part = self._spread_number(part, op.shape[2])
            if part is None:
                return False
        self.parts[op.name] = part
        return all(self._is_as_wide(operand, op) for operand in part.operands if operand not in self.numbers)

    def _spread_number(self, part: Part, columns: int) -> Part | None:
        """Return the part with its operand of one number for each row spread over the columns; None if it has several
        such operands or cannot spread this one."""
        numbers = [place for place, operand in enumerate(part.operands) if operand in self.numbers]
        if len(numbers) > 1 or part.type not in SPREADING or (part.type == "subtract" and numbers != [1]):
            return None
        (place,) = numbers
        spread_operand = part.operands[place]
        if isinstance(spread_operand, str) and columns > 1:
            across = columns
        else:
            across = 0
        return replace(part, operands=(part.operands[1 - place], spread_operand), spread="c", across=across)

    def _is_as_wide(self, operand: str | Use, op: TileOp) -> bool:
        """Return whether an operand need not be repeated for the op: it has as many columns of tiles as the op's
        result, or is a use from outside."""
        return isinstance(operand, Use) or self.parts[operand].columns == op.shape[2]

    def may_end(self, root: str) -> bool:
        """Return whether a fused op may end with `root`: all columns of its result are right, and a product sums values
        that are computed inside. Values from outside arrive slice by slice, and a separate op sums them as they
        arrive."""
        right = root not in self.numbers or root in self.equal
        products = (part for part in self.parts.values() if part.inner and part.type == "matmul")
        return right and any(isinstance(part.operands[0], str) for part in products)

    def halve(self, root: str) -> dict[str, Part]:
        """Return the parts with numbers that the vector unit computes on half of each tile, unless the op ends with
        such a number."""
        if root in self.numbers:
            return self.parts
        return {
            name: replace(part, attrs={**part.attrs, "vector": "c"})
            if name in self.numbers and part.has("vector unit")
            else part
            for name, part in self.parts.items()
        }


def _may_take_products(op: TileOp) -> bool:
    """Return whether products may be fused with this reader: an element-wise op without the vector unit, which takes
    longer than the way of a product to another op."""
    if not (op.is_tile_by_tile and op.may_be_cut) or op.attrs.get("untilize"):
        return False
    return not any(step.has("vector unit") for step in steps_of(op))


def _has_legal_operands(fused_op: TileOp) -> bool:
    """Return whether no operand of the fused op is transposed (V038), and whether it has room for the factors that all
    rows share."""
    if any(("transpose",) in use.tms for use in fused_op.uses):
        return False
    factors = sum(fused_op.is_factor(number) for number in range(len(fused_op.uses)))
    return factors <= MOST_SHARED_OPERANDS


def fuse_products(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """Fuse products with their reader in the graph itself, and return it: `p = matmul(x, w); y = add(p, r)` becomes one
    op, if p has no other reader and r is not ready later than x; of two products that are added, both are fused."""
    readers = Readers(tiles)
    depths = depths_of(tiles)
    shown = tiles.shown
    for op in list(tiles.ops.values()):
        if not _may_take_products(op):
            continue
        products = [product for product in _fusable_products(readers, op) if product.name not in shown]
        _drop_early_products(op, products, depths)
        if products:
            fused_op = _join_products(op, products)
        else:
            fused_op = None
        if fused_op is not None and has_grid(target_of(fused_op), fused_op):
            readers.put([*products, op], fused_op)
    return tiles


def _drop_early_products(op: TileOp, products: list[TileOp], depths: Mapping[str, int]) -> None:
    """Remove from `products`, the earliest first, those that would wait for an operand of the op that none of them
    gives."""
    while products and _is_late(op, products, depths):
        products.remove(min(products, key=lambda product: _depth_of_operands(product, depths)))


def _fusable_products(readers: Readers, op: TileOp) -> list[TileOp]:
    """Return the plain products that only the op reads, without TMs."""
    read = (readers.only_source(op, place) for place in range(len(op.uses)))
    return [product for product in read if product is not None and _may_go_into(readers.tiles, product, op)]


def _may_go_into(tiles: TileGraph, product: TileOp, op: TileOp) -> bool:
    """Return whether a product may be a step of the op: a plain matmul of the op's shape, formats and chip."""
    transposed = any(("transpose",) in use.tms for use in product.uses)  # V038
    plain = product.type == "matmul" and product.grid is None and not transposed and not set(product.attrs) - {"bias"}
    alike = (product.shape, product.precision, product.chip) == (op.shape, op.precision, op.chip)
    constant_bias = all(
        use.source in tiles.constants for use in product.uses[2:]
    )  # of a bias that is computed, row 0 is read
    return plain and alike and constant_bias


def _depth_of_operands(product: TileOp, depths: Mapping[str, int]) -> int:
    """Return the depth, as a number of ops, at which a product's operands are ready."""
    return max(depths.get(use.source, 0) for use in product.uses)


def _is_late(op: TileOp, products: list[TileOp], depths: Mapping[str, int]) -> bool:
    """Return whether one of the products would wait for an operand of the op that none of them gives."""
    names = {product.name for product in products}
    others = [depths.get(use.source, 0) for use in op.uses if use.source not in names]
    return max(others, default=0) > min(_depth_of_operands(product, depths) for product in products)


def _rename_inputs(step: SubOp, words: Mapping[str, str]) -> SubOp:
    """Return the step with other names of inputs where the mapping has them."""
    return replace(step, inputs=tuple(words.get(name, name) for name in step.inputs))


def _join_products(op: TileOp, products: list[TileOp]) -> TileOp | None:
    """Return the op with its products as steps; None if buffers do not suffice."""
    names = {product.name: product for product in products}
    outer_places = [place for place, use in enumerate(op.uses) if use.source not in names]
    uses: list[Use] = [op.uses[place] for place in outer_places]
    words = {f"input{place}": f"input{number}" for number, place in enumerate(outer_places)}
    first = list[SubOp]()
    biases = list[SubOp]()
    for place, use in enumerate(op.uses):
        product = names.get(use.source)
        if product is None:
            continue
        inputs = [f"input{len(uses) + number}" for number in range(len(product.uses))]
        uses += product.uses
        words[f"input{place}"] = slot = f"intermed{op.intermediates + len(first)}"
        name = product.name
        if product.attrs.get("bias"):  # a row of equal rows
            biases.append(SubOp(name, "add", (slot, inputs[2]), slot, pop=(slot,)))
            name = f"{product.name}.sum"
        first.append(SubOp(name, "matmul", tuple(inputs[:2]), slot, inner=product.inner))
    if len(uses) > MAX_INPUTS or op.intermediates + len(first) > MAX_INTERMEDIATES:
        return None
    renamed = [_rename_inputs(step, words) for step in steps_of(op)]
    after = _pop_after_last_use(renamed, {step.output for step in first})
    sources = tuple(chain.from_iterable(part.sources for part in (*products, op)))
    return replace(op, type="fused_op", uses=uses, attrs={}, steps=(*first, *biases, *after), made_of=sources)


def _pop_after_last_use(steps: Sequence[SubOp], slots: Container[str]) -> list[SubOp]:
    """Return the steps, with each of the slots popped by the step that reads it last."""
    last: dict[str, int] = {}
    for number, step in enumerate(steps):
        last |= {name: number for name in step.inputs if name in slots}
    popping: list[SubOp] = []
    for number, step in enumerate(steps):
        popped = (name for name in dict.fromkeys(step.inputs) if last.get(name) == number)
        popping.append(replace(step, pop=(*step.pop, *popped)))
    return popping
