"""Pipes from chip to chip over Ethernet: each becomes unicasts through relays at both ends of the links on its way
(net2pipe's multi-chip pass). What gathers does so on the chip that it comes from, what multicasts on the one that it
goes to; then links are chosen, those with the fewest buffers first, for the nearest chips first."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from buda_emu.performance.routing.pipes.core_budget import RELAYS, TRANSFERS, Account, CoreBudget, worth
from buda_emu.performance.routing.pipes.ethernet import Core, Hop
from buda_emu.performance.routing.pipes.granularity import base_of
from buda_emu.performance.routing.pipes.library_order import sorted_as_vendor
from buda_emu.performance.routing.pipes.links import ETHERNET_CORES, NO_WAY, Links
from buda_emu.performance.routing.pipes.make_pipes import Draft
from buda_emu.performance.routing.pipes.op_buffers import result_fields
from buda_emu.performance.routing.pipes.refusal import RefusedError

_FEWER: Final = "cut producer and consumer alike, send it to fewer ops, or use a queue between two epochs"


class Hops:
    """Lays the pipes of an epoch over links: `drafts` by id are all pipes after that, `made` the relays."""

    def __init__(self, links: Links, account: Account, drafts: Sequence[Draft]) -> None:
        self.links = links
        self.account = account
        self.drafts = {draft.id: draft for draft in drafts}
        self.made: dict[int, Hop] = {}
        self._ids = account.buffers.ids
        self._counter = account.counter

    def lay(self) -> None:
        """RefusedError for what finds no way or no room, and for what would be padded on its way."""
        for draft in self.drafts.values():
            self._check_padding(draft)
        for draft in [one for one in self.drafts.values() if one.link and not self._is_link(one)]:
            self._detour(draft)
        for fixed in (True, False):
            self._decompose(fixed)
        apart = [draft for draft in self.drafts.values() if self._crosses(draft)]
        for draft in sorted_as_vendor(apart, self._distance):
            if not self._is_link(draft):
                self._route(draft)

    def _crosses(self, draft: Draft) -> bool:
        return self.account.crosses(draft)

    def _check_padding(self, draft: Draft) -> None:
        """RefusedError where a pipe gathers padding beside what another chip sends; pieces in turn have it apart."""
        account = self.account
        own = {base_of(one) for one in draft.inputs}
        padding = own & account.buffers.padding.made.keys()
        chips = {account.chip_of(one) for one in own - padding}
        if padding and not draft.scattered and not {account.chip_of(one) for one in draft.outputs[0]} <= chips:
            what = f"{draft.source} of another chip would be padded after the way"
            raise RefusedError("V368", what, "pad it on the chip that it comes from", draft.reader)

    def _detour(self, draft: Draft) -> None:
        """A copy between chips that no link connects: over the link of its first channel to a relay, from there as any
        other pipe to a relay at the far end of the link of its last channel."""
        begin = draft.inputs[0]
        end = draft.outputs[0][0]
        self.account.disconnect(draft)
        del self.drafts[draft.id]
        first, last = (self._at_far_end(one, end) for one in (begin, end))
        for near, far in ((begin, first.id), (first.id, last.id), (last.id, end)):
            part = self._pipe(draft, [near], (far,), from_relay=True, to_relay=True)
            part.link = near != first.id
            if part.link:
                part.cores = [(self.account.chip_of(far), *self.account.cores[base_of(far)].place)]
            else:
                self._at(part, first.at)

    def _at_far_end(self, buffer: int, arrival: int) -> Hop:
        """A relay where the link of a buffer's Ethernet core leads to, for what arrives at another: as large as that
        one if it is the same."""
        near = self.account.cores[buffer]
        core = self._ethernet(*self.links.ends[near.chip][near.channel])
        size = self.account.tile_of(arrival)
        budget = self.account.budget(core)
        hop = Hop(
            id=self._ids.new(),
            chip=core.chip,
            piece=self._piece(arrival),
            epoch_tiles=self._epoch_tiles(arrival),
            tile_bytes=size,
        )
        if buffer == arrival:
            made = self.account.buffers.ops.made[arrival]
            hop.tiles = made.size_tiles
            hop.result = result_fields(self.account.epoch.ops[made.op])
        if budget.relays >= RELAYS or budget.free_bytes < hop.tiles * size:
            what = f"channel {core.channel} of chip {core.chip} has no room for a relay of {hop.tiles} tiles"
            raise RefusedError("V362", what, "send it in smaller blocks, or over chips that links connect")
        self._new(hop)
        self._settle(hop, core)
        return hop

    # To unicasts

    def _decompose(self, fixed: bool) -> None:
        """`fixed`: only what is gathered where it comes from."""
        for draft in [one for one in self.drafts.values() if one.scattered and self._crosses(one)]:
            if not fixed or self._is_fixed(draft):
                self._scatter(draft)
        for draft in [one for one in self.drafts.values() if self._crosses(one)]:
            if fixed and not self._is_fixed(draft):
                continue
            if len(draft.inputs) > 1 or len(draft.outputs[0]) > 1:
                self._split(draft)

    def _is_fixed(self, draft: Draft) -> bool:
        if draft.scattered:  # of an op: a queue's pieces need no turns
            return self._one_source(draft)
        if len(draft.inputs) == 1:
            return False
        here = draft.cores[0][0] == self.account.chip_of(draft.inputs[0])
        return here or (not self._in_dram(draft) and self._one_source(draft))

    def _in_dram(self, draft: Draft) -> bool:
        return self.account.queue_of(draft.inputs[0]) is not None

    def _sources(self, draft: Draft) -> list[Core]:
        cores = self.account.cores
        return list(dict.fromkeys(cores[base_of(one)] for one in draft.inputs if base_of(one) in cores))

    def _one_source(self, draft: Draft) -> bool:
        return len(self._sources(draft)) == 1

    def _scatter(self, draft: Draft) -> None:
        """Pieces for several outputs in turn: each set of outputs gets a relay on the chip that they come from."""
        account = self.account
        source = self.account.cores[base_of(draft.inputs[0])]
        alone = self._one_source(draft)
        known: dict[tuple[int, ...], Hop] = {}
        for turn, outputs in enumerate(list(draft.outputs)):
            hop = known.get(outputs)
            old = Core(*draft.cores[turn])
            account.carry(draft, turn, -1)
            if hop is None:
                hop = self._relay(source.chip, draft, outputs[0], outputs[0])
                draft.outputs[turn] = (hop.id,)
                where = account.cores[outputs[0]] if len(outputs) == 1 else old
                self._at(self._pipe(draft, [hop.id], outputs, from_relay=True), where)
                known[outputs] = hop
                self._put(hop, ())
            draft.outputs[turn] = (hop.id,)
            where = source if alone else self._place(draft, source.chip, [source])
            draft.cores[turn] = (where.chip, *where.place)
            account.carry(draft, turn)
        draft.to_relay = True

    def _split(self, draft: Draft) -> None:
        """Gather on the one chip, send one to one, multicast on the other."""
        account = self.account
        inputs = draft.inputs
        outputs = draft.outputs[0]
        here = account.chip_of(inputs[0])
        there = account.chip_of(outputs[0])
        old = Core(*draft.cores[0], draft.channel)
        in_dram = self._in_dram(draft)
        sources = self._sources(draft)
        alone = not in_dram and len(sources) == 1
        account.disconnect(draft)
        del self.drafts[draft.id]
        if len(inputs) == 1:
            last = self._relay(there, draft, outputs[0], inputs[0])
            middle = self._pipe(draft, inputs, (last.id,), to_relay=True)
            self._at(self._pipe(draft, [last.id], outputs, from_relay=True), old)
            self._at(middle, self._put(last, [account.cores[one] for one in outputs]))
            return
        first = self._relay(here, draft, outputs[0], inputs[0])
        last = self._relay(there, draft, outputs[0], inputs[0]) if len(outputs) > 1 else None
        gather = self._pipe(draft, inputs, (first.id,), to_relay=True)
        end = None
        middle = None
        begins = old
        if last is not None:
            middle = self._pipe(draft, [first.id], (last.id,), from_relay=True, to_relay=True)
            end = self._pipe(draft, [last.id], outputs, from_relay=True)
            begins = self._place(end, there, [old])
            self._at(end, begins)
        where = old if old.chip == here else self._place(gather, here, sources, first if in_dram else None, alone=alone)
        if last is None and where.channel >= 0:
            what = f"{draft.source} would be gathered on an Ethernet core of chip {here}"
            raise RefusedError("V364", what, _FEWER, draft.reader)
        if last is None:
            self._at(self._pipe(draft, [first.id], outputs, from_relay=True), where)
        self._at(gather, where)
        if in_dram:
            self._settle(first, where)
        else:
            self._put(first, sources)
        if last is not None and middle is not None:
            self._at(middle, self._put(last, [begins]))

    def _relay(self, chip: int, draft: Draft, output: int, piece_of: int) -> Hop:
        """A relay on a chip, nowhere yet: for what goes to `output`, in pieces as another buffer's."""
        source = draft.inputs[0]
        hop = Hop(
            id=self._ids.new(),
            chip=chip,
            piece=self._piece(piece_of),
            epoch_tiles=self._epoch_tiles(output),
            tile_bytes=self.account.tile_of(source),
        )
        return self._new(hop)

    def _new(self, hop: Hop) -> Hop:
        self.made[hop.id] = hop
        self.account.add_relay(hop.id, hop.chip, hop.tile_bytes)
        return hop

    def _piece(self, id: int) -> int:
        base = base_of(id)
        if base in self.made:
            return self.made[base].piece
        queue = self.account.queue_of(base)
        made = self.account.buffers.ops.made
        return self.account.cuts[queue.name].tiles if queue is not None else made[base].scatter_gather_num_tiles

    def _epoch_tiles(self, id: int) -> int:
        base = base_of(id)
        if base in self.made:
            return self.made[base].epoch_tiles
        queue = self.account.queue_of(base)
        if queue is not None:
            return queue.blocking.tiles_per_core * self.account.epoch.input_count
        return self.account.buffers.ops.made[base].epoch_tiles

    def _pipe(
        self,
        draft: Draft,
        inputs: list[int],
        outputs: tuple[int, ...],
        *,
        from_relay: bool = False,
        to_relay: bool = False,
    ) -> Draft:
        """A pipe for a part of the way of another, on no core yet."""
        base = base_of(inputs[0])
        made = replace(
            draft,
            id=self._ids.new(),
            inputs=inputs,
            outputs=[outputs],
            cores=[],
            channel=-1,
            scattered=False,
            padding=[],
            bases=draft.bases if not from_relay else [base],
            source="" if from_relay else draft.source,
            from_relay=from_relay,
            to_relay=to_relay,
        )
        self.drafts[made.id] = made
        self.account.connect(made)
        return made

    def _at(self, draft: Draft, core: Core) -> None:
        """Let a pipe be carried out on a core."""
        draft.cores = [(core.chip, *core.place)]
        draft.channel = core.channel
        self.account.carry(draft)

    def _place(
        self, draft: Draft, chip: int, preferred: Sequence[Core], relay: Hop | None = None, *, alone: bool = False
    ) -> Core:
        """The first core that can carry out a pipe, with its relay if there is one: of those that are preferred, then
        of the chip's, but for what comes from one core `alone`."""
        asked = self.account.asked(draft)
        wide = self.account.counter.wide
        size = -1 if relay is None else relay.tile_bytes
        tried = set(preferred)
        for core in preferred:
            if self.account.budget(core).takes(asked, wide, size):
                return core
        for core, budget in () if alone else self.account.workers(chip):
            if core not in tried and budget.takes(asked, wide, size):
                return core
        what = f"no core of chip {chip} has room for what {draft.source or 'another chip'} sends on"
        raise RefusedError("V364", what, _FEWER, draft.reader)

    def _put(self, hop: Hop, preferred: Sequence[Core]) -> Core:
        """Find a relay a core."""
        readers = [self.drafts[one] for one in self.account.readers.get(hop.id, ())]
        multicasts = sum(len(one.outputs[0]) > 1 for one in readers)
        stored = sum(self.account.queue_of(one.outputs[0][0]) is not None for one in readers)

        def takes(budget: CoreBudget) -> bool:
            return budget.takes_relay(hop.tile_bytes, multicasts, len(readers), 0, stored)

        core = next((core for core in preferred if takes(self.account.budget(core))), None)
        if core is None:
            core = worth([(core, budget) for core, budget in self.account.workers(hop.chip) if takes(budget)])
        if core is None:
            raise RefusedError("V364", f"no core of chip {hop.chip} has room for a relay", _FEWER)
        return self._settle(hop, core)

    def _settle(self, hop: Hop, core: Core) -> Core:
        hop.core, hop.number = core, self.account.place_relay(hop.id, core, hop.tiles)
        return core

    # Over links

    def _distance(self, draft: Draft) -> int:
        here, there = self._ends(draft)
        return len(self.links.way(here, there, _one))

    def _ends(self, draft: Draft) -> tuple[int, int]:
        return self.account.chip_of(draft.inputs[0]), self.account.chip_of(draft.outputs[0][0])

    def _is_link(self, draft: Draft) -> bool:
        """Whether both ends are on the cores of one link already."""
        near, far = (self.account.cores.get(base_of(one)) for one in (draft.inputs[0], draft.outputs[0][0]))
        if near is None or far is None or min(near.channel, far.channel) < 0:
            return False
        return self.links.connects((near.chip, near.channel), (far.chip, far.channel))

    def _ethernet(self, chip: int, channel: int) -> Core:
        return Core(chip, *ETHERNET_CORES[self.account.epoch.netlist.arch_name][channel], channel)

    def _budget(self, chip: int, channel: int) -> CoreBudget:
        return self.account.budget(self._ethernet(chip, channel))

    def _route(self, draft: Draft) -> None:
        """One unicast over its links: relays at both ends of each, and the pipes between them."""
        account = self.account
        source = draft.inputs[0]
        target = draft.outputs[0][0]
        here, there = self._ends(draft)
        from_dram = self._in_dram(draft)
        to_dram = account.queue_of(target) is not None
        way = self.links.way(here, there, lambda a, b: self._weight(a, b, from_dram=from_dram, to_dram=to_dram))
        if not way:
            what = f"no Ethernet link from chip {here} to chip {there} has room for one more pipe"
            raise RefusedError("V362", what, _FEWER, draft.reader)
        piece = self._piece(source)
        tiles = self._epoch_tiles(source)
        size = account.tile_of(source)
        chosen = [
            self._link(*step, size, from_dram and not number, to_dram and number == len(way) - 1, draft)
            for number, step in enumerate(way)
        ]
        account.disconnect(draft)
        del self.drafts[draft.id]
        ends: list[tuple[int, int]] = []
        for (near, far), channels in zip(way, chosen, strict=True):
            pair: list[int] = []
            for chip, channel, end in zip((near, far), channels, (source, target), strict=True):
                core = self._ethernet(chip, channel)
                if account.cores.get(base_of(end)) == core:
                    pair.append(end)
                    continue
                hop = self._new(Hop(id=self._ids.new(), chip=chip, piece=piece, epoch_tiles=tiles, tile_bytes=size))
                self._settle(hop, core)
                pair.append(hop.id)
            ends.append((pair[0], pair[1]))
            link = self._pipe(draft, [pair[0]], (pair[1],), from_relay=True, to_relay=True)
            link.link = True
            link.cores = [(far, *account.cores[base_of(pair[1])].place)]
        for (_, before), (after, _) in pairwise(ends):
            self._at(self._pipe(draft, [before], (after,), from_relay=True, to_relay=True), account.cores[after])
        self._join(draft, ends[0][0], ends[-1][1])

    def _join(self, draft: Draft, first: int, last: int) -> None:
        """From where a pipe came from to the first relay, and from the last to where it goes."""
        account = self.account
        source = draft.inputs[0]
        target = draft.outputs[0][0]
        begin: Draft | None = None
        if first != source:
            begin = self._pipe(draft, [source], (first,), from_relay=draft.from_relay, to_relay=True)
            made = account.buffers.ops.made.get(base_of(source))
            self._at(begin, account.cores[base_of(source) if made is not None and made.is_scatter else first])
        if last != target:
            end = self._pipe(draft, [last], (target,), from_relay=True, to_relay=draft.to_relay)
            self._at(end, account.cores[last])
        if begin is not None and account.asked(begin).held:
            self._before_link(begin, first)

    def _before_link(self, draft: Draft, first: int) -> None:
        """What is read from DRAM in pieces is held by a relay of a worker core: of that which has least room left."""
        account = self.account
        source = draft.inputs[0]
        account.disconnect(draft)
        del self.drafts[draft.id]
        like = self.made[first]
        hop = self._new(
            Hop(
                id=self._ids.new(),
                chip=like.chip,
                piece=like.piece,
                epoch_tiles=like.epoch_tiles,
                tile_bytes=like.tile_bytes,
            )
        )
        read = self._pipe(draft, [source], (hop.id,), to_relay=True)
        self._at(self._pipe(draft, [hop.id], (first,), from_relay=True, to_relay=True), account.cores[first])
        asked = account.asked(read)
        wide = account.counter.wide
        budgets = [
            (core, budget) for core, budget in account.workers(hop.chip) if budget.takes(asked, wide, hop.tile_bytes)
        ]
        if not budgets:
            raise RefusedError("V364", f"no core of chip {hop.chip} has room for a relay", _FEWER, draft.reader)
        core, _ = sorted_as_vendor(budgets, lambda one: one[1].free_bytes)[0]
        self._at(read, core)
        self._settle(hop, core)

    def _weight(self, near: int, far: int, *, from_dram: bool, to_dram: bool) -> int:
        """Of a step: the least use of its links that have a stream left."""
        found = NO_WAY
        for here, there in self.links.between(near, far):
            one = self._budget(near, here)
            other = self._budget(far, there)
            if one.can_transfer() and other.can_transfer() and one.can_read(from_dram) and other.can_write(to_dram):
                found = min(found, max(one.transfers, other.transfers) + TRANSFERS)
        return found

    def _link(self, near: int, far: int, size: int, from_dram: bool, to_dram: bool, draft: Draft) -> tuple[int, int]:
        """The channels of the link with the fewest buffers that has room."""

        def used(link: tuple[int, int]) -> int:
            return max(self._budget(near, link[0]).buffers, self._budget(far, link[1]).buffers)

        for here, there in sorted_as_vendor(self.links.between(near, far), used):
            sends = self._budget(near, here).takes_transfer(size, from_dram=from_dram, to_dram=False)
            if sends and self._budget(far, there).takes_transfer(size, from_dram=False, to_dram=to_dram):
                return here, there
        what = f"no Ethernet link from chip {near} to chip {far} has room for one more relay"
        raise RefusedError("V362", what, _FEWER, draft.reader)


def _one(_near: int, _far: int) -> int:
    """The weight of any step."""
    return 1
