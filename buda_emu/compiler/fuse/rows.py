"""What is computed row by row becomes one fused op, with the maxima and sums of the rows, and products with what reads
them.
"""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, replace
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
from buda_emu.compiler.lower.schedule import MAX_INPUTS, MAX_INTERMEDIATES, Part, scheduled, schedules
from buda_emu.compiler.lower.tiles import SubOp, TileAttributes, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import SHARED, TargetOf, has_grid

_TIMES: Final = 2
"""Fused ops that compute the same at most, each for itself: the parts of a softmax over two tensors."""


def fuse_rows(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """`m = reduce(x); e = exp(subtract(x, m)); s = matmul(e, ones); y = multiply(e, reciprocal(s))` becomes one op,
    where nothing but this reads what is between. What two such ops need, each of them computes."""
    order = {name: number for number, name in enumerate(tiles.ops)}
    found = _Rows(tiles, Readers(tiles), target_of, order, tiles.shown, with_equal_columns(tiles))
    for group in found.groups():
        made = [found.fused(root, members) for root, members in group.items()]
        if None not in made:
            found.put([op for op in made if op is not None], group)
    return tiles


@dataclass(frozen=True, slots=True)
class _Rows:
    """`order`: of each op its number; `shown`: the ops that the host or a ram takes; `equal`: those whose columns are
    all the same."""

    tiles: TileGraph
    readers: Readers
    target_of: TargetOf
    order: Mapping[str, int]
    shown: frozenset[str]
    equal: Set[str]

    # ------------------------------------------------------------------------------------------------------- groups
    def groups(self) -> list[dict[str, list[str]]]:
        """Fused ops to be, by the name of the last op of each, with all that go into it; those that share some are one
        group. Only groups that take a maximum or a sum of rows."""
        by_row = {op.name for op in self.tiles.ops.values() if self._is_by_row(op)}
        ends = {name for name in by_row if not self._stays_inside(name, by_row)}
        depths = depths_of(self.tiles, by_row)  # products and moves
        while True:
            both = {name: self._cone(name, by_row, ends) for name in self.tiles.ops if name in ends}
            cones = {name: cone for name, (cone, _) in both.items()}
            more = self._handed_on(cones).union(*(self._early(cone, depths) for cone in cones.values()))
            more = more.union(*(before for _, before in both.values())) - ends
            if not more:
                break
            ends |= more
        return [group for group in _joined(cones) if any(self._sums(name) for cone in group.values() for name in cone)]

    def _handed_on(self, cones: Mapping[str, list[str]]) -> set[str]:
        """What is better handed on by an op of its own than computed again: what more than two read, and what is all
        that they share."""
        owners: dict[str, list[str]] = {}
        for root, cone in cones.items():
            for name in cone:
                owners.setdefault(name, []).append(root)
        found = {name for name, roots in owners.items() if len(roots) > _TIMES}
        shared: dict[tuple[str, ...], set[str]] = {}
        for name, roots in owners.items():
            if len(roots) == _TIMES and any(owners[reader] != roots for reader, _ in self.readers.of(name)):
                shared.setdefault(tuple(roots), set()).add(name)
        dear = (name for name in owners if self._is_dear(name, cones))
        return found.union(*(names for names in shared.values() if len(names) == 1), dear)

    def _is_dear(self, name: str, ends: Container[str]) -> bool:
        """Whether something wider than a block is read more than once, and computing it anew takes more than an op on
        one tensor (`again`)."""
        op = self.tiles.ops[name]
        tiles = self.tiles
        if op.shape[2] <= self.target_of(op).dest_tiles or len({reader for reader, _ in self.readers.of(name)}) < 2:
            return False
        made = [use.source for use in op.uses if use.source not in tiles.constants]
        wide = [source for source in made if tiles.shape_of(source)[2] > 1]
        return len(wide) > 1 or any(
            source not in ends and self._is_by_row(tiles.ops[source]) and not self._is_dear(source, ends)
            for source in wide
            if source in tiles.ops
        )

    def _early(self, cone: list[str], depths: Mapping[str, int]) -> set[str]:
        """What takes sums and is done before something else is there that it is computed with: an op of its own takes
        them meanwhile."""
        found = set[str]()
        latest = dict[str, int]()
        sums = dict[str, bool]()
        for name in cone:
            sources = [use.source for use in self.tiles.ops[name].uses]
            inner = [source for source in sources if source in latest]
            when = {source: latest.get(source, depths.get(source, 0)) for source in sources}
            plain = max((when[source] for source in sources if not sums.get(source)), default=0)
            found.update(source for source in inner if sums[source] and plain > latest[source])
            latest[name] = max(when.values(), default=0)
            sums[name] = self._sums(name) or any(sums[source] for source in inner)
        return found

    def _is_by_row(self, op: TileOp) -> bool:
        return is_elementwise(op) or self._sums(op.name) or spreads_column(self.tiles, op)

    def _sums(self, name: str) -> bool:
        """Whether it is the largest number of each row, or the sum of all of them times a constant."""
        op = self.tiles.ops[name]
        if op.has("reduces"):
            return op.attrs == {"dim": "c", "type": "max"}
        if op.type != "matmul" or op.shape[2] != 1 or set(op.attrs) - {"bias"} or spreads_column(self.tiles, op):
            return False
        return (
            all(
                use.source in self.tiles.constants
                and all(tm[:2] in (("broadcast", "z"), ("broadcast", "r")) for tm in use.tms)
                and equal_columns(self.tiles.constants[use.source])
                for use in op.uses[1:]
            )
            and self.tiles.shape_of(op.uses[1].source)[0] == 1
        )

    def _stays_inside(self, name: str, by_row: set[str]) -> bool:
        """Whether all that reads an op is by row, of the same rows."""
        op = self.tiles.ops[name]
        tiles = self.tiles
        found = self.readers.of(name)
        return (
            bool(found)
            and name not in self.shown
            and all(reader in by_row and self._is_inner(tiles.ops[reader], place, op) for reader, place in found)
        )

    def _is_inner(self, reader: TileOp, place: int, source: TileOp) -> bool:
        """Whether an operand may stay within a fused op: it is read as it is, or its one column repeated."""
        if reader.program != source.program or reader.shape[:2] != source.shape[:2]:
            return False
        tms = reader.uses[place].tms
        columns = source.shape[2]
        if self._sums(reader.name):
            return place == 0 and not tms
        return not tms or (columns == 1 and tms == (("broadcast", "c", reader.shape[2]),))

    def _cone(self, root: str, by_row: set[str], ends: set[str]) -> tuple[list[str], list[str]]:
        """The op and what is before it that stays inside, operands first, but no more than one fused op has; and what
        is before these then."""
        found = {root}
        left = [root]
        while left and len(found) < MOST:
            op = self.tiles.ops[left.pop()]
            inner = (
                use.source
                for place, use in enumerate(op.uses)
                if use.source in by_row
                and use.source not in ends
                and self._is_inner(op, place, self.tiles.ops[use.source])
            )
            new = [name for name in dict.fromkeys(inner) if name not in found]
            found.update(new)
            left += new
        return sorted(found.difference(left) | {root}, key=self.order.__getitem__), left

    # ---------------------------------------------------------------------------------------------------- fused ops
    def fused(self, root: str, members: list[str]) -> TileOp | None:
        """One op for all of these; None where there is none that the device takes."""
        own = self.tiles.ops[root]
        parts = _Parts.of(self, members)
        if parts is None or not is_elementwise(own) or not parts.may_end(root):
            return None
        sources = tuple(source for name in self.tiles.ops if name in members for source in self.tiles.ops[name].sources)
        target = self.target_of(replace(own, made_of=sources))
        found = scheduled(again(parts.halved(root), target.dest_tiles), root, target.arch.name)
        if found is None:
            return None
        steps, uses = found
        made = replace(own, type="fused_op", uses=uses, attrs={}, steps=steps, made_of=sources)
        turns = any(("transpose",) in use.tms for use in uses)  # V038
        if turns or sum(made.is_factor(number) for number in range(len(uses))) > SHARED:
            return None
        fits = _is_in_step(steps, own.shape[2], target.dest_tiles) and has_grid(target, made)
        return made if fits else None

    def put(self, made: list[TileOp], group: Mapping[str, list[str]]) -> None:
        """Fused ops in the places of the last op of each; nobody reads the others any more."""
        for op in made:
            self.readers.put([self.tiles.ops[op.name]], op)
        gone = {name for members in group.values() for name in members} - set(group)
        for name in [name for name in reversed(self.tiles.ops) if name in gone]:
            self.readers.drop(self.tiles.ops[name])

    def operand(self, op: TileOp, place: int, members: list[str]) -> str | Use:
        """A member, or what the fused op reads."""
        use = op.uses[place]
        inner = use.source in members and self._is_inner(op, place, self.tiles.ops[use.source])
        return use.source if inner else use


def _joined(cones: Mapping[str, list[str]]) -> list[dict[str, list[str]]]:
    """Those that share ops together."""
    group_of: dict[str, dict[str, list[str]]] = {}
    for root, cone in cones.items():
        group = {root: cone}
        for name in cone:
            group |= group_of.get(name, {})
        for own in group.values():
            group_of.update(dict.fromkeys(own, group))
    return list({id(group): group for group in group_of.values()}.values())


def _is_in_step(steps: tuple[SubOp, ...], columns: int, dest: int) -> bool:
    """Whether what has more than one block in a schedule has as many (OPS 8.3). The vector unit has one block at most:
    columns are not divided over cores, which it takes longest for."""
    if any(step.has("vector unit") and (step.columns or columns) > dest for step in steps):
        return False
    wide = [{step.columns or columns for step in schedule if not step.inner} for schedule in schedules(steps)]
    return all(max(found, default=1) <= dest or len(found - {1}) == 1 for found in wide)


def again(parts: Mapping[str, Part], dest: int) -> dict[str, Part]:
    """What is wider than one block, and read more than once, is computed anew for each that reads it: no buffer keeps
    it while a sum is taken."""
    found: dict[str, Part] = {}
    read: set[str] = set()

    def own(name: str) -> str:
        part = parts[name]
        if part.inner or part.columns <= dest or name not in read:
            read.add(name)
            return name
        number = sum(other.startswith(f"{name}.again") for other in found)
        copy = f"{name}.again{number or ''}"
        found[copy] = replace(part, name=copy, operands=_each(part.operands))
        return copy

    def _each(operands: tuple[str | Use, ...]) -> tuple[str | Use, ...]:
        names = {item: own(item) for item in dict.fromkeys(operands) if isinstance(item, str)}
        return tuple(names[item] if isinstance(item, str) else item for item in operands)

    for name, part in parts.items():
        found[name] = replace(part, operands=_each(part.operands))
    return found


# ------------------------------------------------------------------------------------------------------------- parts
@dataclass(slots=True)
class _Parts:
    """Sub-ops to be, by name. `numbers`: those that are one number for each row, of which column 0 is right at least;
    `equal`: those whose columns are all the same."""

    rows: _Rows
    parts: dict[str, Part]
    same: dict[str, str | Use]
    numbers: set[str | Use]
    equal: set[str | Use]

    @staticmethod
    def of(rows: _Rows, members: list[str]) -> "_Parts | None":
        """None where a step is not one of a fused op."""
        found = _Parts(rows, {}, {}, set(), set())
        if all(found._add(rows.tiles.ops[name], members) for name in members):
            return found
        return None

    def _add(self, op: TileOp, members: list[str]) -> bool:
        operands = [self._operand(op, place, members) for place in range(len(op.uses))]
        if spreads_column(self.rows.tiles, op):  # who reads it spreads it
            self.same[op.name] = operands[0]
            self.numbers.add(operands[0])
            return True
        if op.has("reduces"):
            return operands[0] not in self.numbers and self._sum(op, (operands[0],), {"dim": "c", "type": "max"})
        if op.type == "matmul":
            return operands[0] not in self.numbers and self._product(op, operands)
        return op.type != "dropout" and self._elementwise(op, operands)

    def _operand(self, op: TileOp, place: int, members: list[str]) -> str | Use:
        found = self.rows.operand(op, place, members)
        if isinstance(found, Use):
            if is_equal(self.rows.tiles, found, self.rows.equal):
                self.equal.add(found)
            return found
        same = self.same.get(found, found)
        if isinstance(same, Use):
            same = replace(same, tms=same.tms + op.uses[place].tms)
            self.numbers.add(same)
        return same

    def _sum(self, op: TileOp, operands: tuple[str | Use, ...], attrs: TileAttributes) -> bool:
        self.parts[op.name] = Part(op.name, op.type, operands, attrs, columns=1, inner=op.inner)
        self.numbers.add(op.name)
        return True

    def _product(self, op: TileOp, operands: list[str | Use]) -> bool:
        self._sum(op, tuple(operands[:2]), {})
        self.equal.add(op.name)
        if op.attrs.get("bias"):
            inner = f"{op.name}.sum"
            self.parts[inner] = replace(self.parts[op.name], name=inner)
            self.parts[op.name] = Part(op.name, "add", (inner, operands[2]), columns=1)
        return True

    def _elementwise(self, op: TileOp, operands: list[str | Use]) -> bool:
        part = replace(Part.of(op, ()), operands=tuple(operands), columns=op.shape[2])
        if op.type == "square":  # by the math unit, which is quicker than the vector unit
            part = replace(part, type="multiply", operands=(*part.operands, *part.operands))
        numbers = [place for place, item in enumerate(operands) if item in self.numbers]
        if op.shape[2] == 1 and all(item in self.numbers or item in self.equal for item in operands):
            self.numbers.add(op.name)
            if all(item in self.equal for item in operands):
                self.equal.add(op.name)
        elif numbers:
            if len(numbers) > 1 or part.type not in SPREADING or (part.type == "subtract" and numbers != [1]):
                return False
            (place,) = numbers
            own = operands[place]
            if isinstance(own, str) and op.shape[2] > 1:
                across = op.shape[2]
            else:
                across = 0
            part = replace(part, operands=(operands[1 - place], own), spread="c", across=across)
        self.parts[op.name] = part
        return all(self._is_as_wide(item, op) for item in part.operands if item not in self.numbers)

    def _is_as_wide(self, item: str | Use, op: TileOp) -> bool:
        """Whether a member is no column that the op reads repeated."""
        return isinstance(item, Use) or self.parts[item].columns == op.shape[2]

    def may_end(self, root: str) -> bool:
        """Whether all columns of the result are right, and what is summed is made here: what comes from elsewhere,
        slice by slice, is summed as it comes by an op of its own."""
        right = root not in self.numbers or root in self.equal
        products = (part for part in self.parts.values() if part.inner and part.type == "matmul")
        return right and any(isinstance(part.operands[0], str) for part in products)

    def halved(self, root: str) -> dict[str, Part]:
        """Numbers by the vector unit on half of each tile, if it is not one of them that the op ends with."""
        if root in self.numbers:
            return self.parts
        return {
            name: replace(part, attrs={**part.attrs, "vector": "c"})
            if name in self.numbers and part.has("vector unit")
            else part
            for name, part in self.parts.items()
        }


def fuse_products(tiles: TileGraph, target_of: TargetOf) -> TileGraph:
    """`p = matmul(x, w); y = add(p, r)` becomes one op, if nobody else reads p, and r does not come later than x; of
    two products that are added, both."""
    readers = Readers(tiles)
    depths = depths_of(tiles)
    shown = tiles.shown
    for op in list(tiles.ops.values()):
        if not (op.is_tile_by_tile and op.may_be_cut) or op.attrs.get("untilize"):
            continue
        if any(step.has("vector unit") for step in steps_of(op)):  # which takes longer than the way to it
            continue
        products = [product for product in _products(readers, op) if product.name not in shown]
        while products and _is_late(op, products, depths):
            products.remove(min(products, key=lambda product: _ready(product, depths)))
        made = _join_products(op, products) if products else None
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


def _join_products(op: TileOp, products: list[TileOp]) -> TileOp | None:
    """The op with its products in it; None where buffers do not suffice."""
    names = {product.name: product for product in products}
    kept = [place for place, use in enumerate(op.uses) if use.source not in names]
    uses: list[Use] = [op.uses[place] for place in kept]
    words = {f"input{place}": f"input{number}" for number, place in enumerate(kept)}
    first = list[SubOp]()
    biases = list[SubOp]()
    for place, use in enumerate(op.uses):
        product = names.get(use.source)
        if product is None:
            continue
        inputs = [f"input{len(uses) + number}" for number in range(len(product.uses))]
        uses += product.uses
        words[f"input{place}"] = slot = f"intermed{op.intermediates + len(first)}"
        if product.attrs.get("bias"):
            name = f"{product.name}.sum"
        else:
            name = product.name
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
