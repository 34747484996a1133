"""Pipes from chip to chip over Ethernet. Each becomes unicasts through relays at both ends of the links on its way
(net2pipe's multi-chip pass). Gathers run on the source chip, multicasts on the destination chip; then links are chosen,
those with the fewest buffers first, for the nearest chips first."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from buda_emu.performance.routing.pipes.core_budget import RELAYS, TRANSFERS, Account, CoreBudget, choose_core
from buda_emu.performance.routing.pipes.ethernet import Core, Hop
from buda_emu.performance.routing.pipes.granularity import base_of
from buda_emu.performance.routing.pipes.library_order import sort_as_vendor
from buda_emu.performance.routing.pipes.links import ETHERNET_CORES, NO_WAY, Links
from buda_emu.performance.routing.pipes.make_pipes import Draft
from buda_emu.performance.routing.pipes.model import RefusedError
from buda_emu.performance.routing.pipes.op_buffers import result_fields

_FEWER: Final = "cut producer and consumer alike, send it to fewer ops, or use a queue between two epochs"


class Hops:
    """Routes the pipes of an epoch that cross chips over links, with `lay`. `drafts` has all pipes of the epoch after
    that, by id; `made` has the relays."""

    def __init__(self, links: Links, account: Account, drafts: Sequence[Draft]) -> None:
        self.links = links
        self.account = account
        self.drafts = {draft.id: draft for draft in drafts}
        self.made: dict[int, Hop] = {}
        self._ids = account.buffers.ids
        self._counter = account.counter

    def lay(self) -> None:
        """Replace, in `drafts`, each pipe that crosses chips by pipes within chips and transfers over links, with
        relays between them, in `made`. Raises RefusedError if there is no way or no room, and for padding on the
        way."""
        for draft in self.drafts.values():
            self._check_padding(draft)
        for draft in [
            draft_to_lay
            for draft_to_lay in self.drafts.values()
            if draft_to_lay.link and not self._is_link(draft_to_lay)
        ]:
            self._detour(draft)
        for fixed in (True, False):
            self._decompose(fixed)
        crossing = [draft for draft in self.drafts.values() if self._crosses(draft)]
        for draft in sort_as_vendor(crossing, self._way_length):
            if not self._is_link(draft):
                self._route(draft)

    def _crosses(self, draft: Draft) -> bool:
        """Return whether a pipe sends tiles to a chip from which it reads none."""
        return self.account.crosses(draft)

    def _check_padding(self, draft: Draft) -> None:
        """Raise RefusedError if a pipe gathers padding together with tiles of another chip; not for a pipe that serves
        outputs in turn, whose padding is apart."""
        account = self.account
        bases = {base_of(buffer_id) for buffer_id in draft.inputs}
        padding = bases & account.buffers.padding.made.keys()
        chips = {account.chip_of(buffer_id) for buffer_id in bases - padding}
        if (
            padding
            and not draft.scattered
            and not {account.chip_of(buffer_id) for buffer_id in draft.outputs[0]} <= chips
        ):
            message = f"{draft.source} of another chip would be padded after the way"
            raise RefusedError("V368", message, "pad it on the chip that it comes from", draft.reader)

    def _detour(self, draft: Draft) -> None:
        """Replace the transfer of a copy between chips that no link connects: over the link of its first channel to a
        relay, from there as any other pipe to a relay at the far end of the link of its last channel."""
        begin = draft.inputs[0]
        end = draft.outputs[0][0]
        self.account.disconnect(draft)
        del self.drafts[draft.id]
        first, last = (self._add_relay_at_far_end(buffer_id, end) for buffer_id in (begin, end))
        for near, far in ((begin, first.id), (first.id, last.id), (last.id, end)):
            part = self._add_pipe(draft, [near], (far,), from_relay=True, to_relay=True)
            part.link = near != first.id
            if part.link:
                part.cores = [(self.account.chip_of(far), *self.account.cores[base_of(far)].place)]
            else:
                self._put_pipe(part, first.at)

    def _add_relay_at_far_end(self, buffer: int, arrival: int) -> Hop:
        """Add and return a relay at the far end of the link of the Ethernet core on which `buffer` lies, for tiles that
        go to the buffer `arrival`; if both are the same, it is as large as this buffer. Raises RefusedError if there is
        no room."""
        near = self.account.cores[buffer]
        core = self._ethernet_core(*self.links.ends[near.chip][near.channel])
        size = self.account.tile_of(arrival)
        budget = self.account.budget(core)
        hop = Hop(
            id=self._ids.new(),
            chip=core.chip,
            piece=self._piece_tiles(arrival),
            epoch_tiles=self._epoch_tiles(arrival),
            tile_bytes=size,
        )
        if buffer == arrival:
            arrival_buffer = self.account.buffers.ops.made[arrival]
            hop.tiles = arrival_buffer.size_tiles
            hop.result = result_fields(self.account.epoch.ops[arrival_buffer.op])
        if budget.relays >= RELAYS or budget.free_bytes < hop.tiles * size:
            message = f"channel {core.channel} of chip {core.chip} has no room for a relay of {hop.tiles} tiles"
            raise RefusedError("V362", message, "send it in smaller blocks, or over chips that links connect")
        self._register_relay(hop)
        self._settle(hop, core)
        return hop

    # To unicasts

    def _decompose(self, fixed: bool) -> None:
        """Turn pipes that cross chips into unicasts, with a gather before and a multicast behind them; with `fixed`
        only those that must gather on the source chip."""
        for draft in self._crossing_pipes(fixed):
            if draft.scattered:
                self._scatter(draft)
        for draft in self._crossing_pipes(fixed):
            if len(draft.inputs) > 1 or len(draft.outputs[0]) > 1:
                self._split(draft)

    def _crossing_pipes(self, fixed: bool) -> list[Draft]:
        """Return the pipes that cross chips; with `fixed` only those that must gather on the source chip."""
        crossing = [draft for draft in self.drafts.values() if self._crosses(draft)]
        if not fixed:
            return crossing
        return [draft for draft in crossing if self._gathers_at_source(draft)]

    def _gathers_at_source(self, draft: Draft) -> bool:
        """Return whether the place where a pipe gathers follows from the pipe: it is on the source chip already, or all
        its tiles come from one core."""
        if draft.scattered:  # of an op: a queue's pieces need no turns
            return self._one_source(draft)
        if len(draft.inputs) == 1:
            return False
        is_local = draft.cores[0][0] == self.account.chip_of(draft.inputs[0])
        return is_local or (not self._in_dram(draft) and self._one_source(draft))

    def _in_dram(self, draft: Draft) -> bool:
        """Return whether a pipe reads a queue in DRAM while the epoch runs, not one that a prologue has loaded."""
        return self.account.queue_of(draft.inputs[0]) is not None

    def _sources(self, draft: Draft) -> list[Core]:
        """Return the cores in whose L1 the inputs of a pipe lie, in order of the inputs, each once."""
        cores = self.account.cores
        return list(
            dict.fromkeys(cores[base_of(buffer_id)] for buffer_id in draft.inputs if base_of(buffer_id) in cores)
        )

    def _one_source(self, draft: Draft) -> bool:
        """Return whether all inputs of a pipe that lie in L1 lie on a single core."""
        return len(self._sources(draft)) == 1

    def _scatter(self, draft: Draft) -> None:
        """Give each set of outputs that a pipe serves in turn a new relay on the source chip, which the pipe fills
        instead, and a pipe from the relay to these outputs."""
        account = self.account
        source = self.account.cores[base_of(draft.inputs[0])]
        one_source = self._one_source(draft)
        hops_by_outputs: dict[tuple[int, ...], Hop] = {}
        for turn, outputs in enumerate(list(draft.outputs)):
            hop = hops_by_outputs.get(outputs)
            old = Core(*draft.cores[turn])
            account.carry(draft, turn, -1)
            if hop is None:
                hop = self._add_relay(source.chip, draft, outputs[0], outputs[0])
                draft.outputs[turn] = (hop.id,)
                if len(outputs) == 1:
                    core = account.cores[outputs[0]]
                else:
                    core = old
                self._put_pipe(self._add_pipe(draft, [hop.id], outputs, from_relay=True), core)
                hops_by_outputs[outputs] = hop
                self._put_relay(hop, ())
            draft.outputs[turn] = (hop.id,)
            if one_source:
                core = source
            else:
                core = self._choose_core(draft, source.chip, [source])
            draft.cores[turn] = (core.chip, *core.place)
            account.carry(draft, turn)
        draft.to_relay = True

    def _split(self, draft: Draft) -> None:
        """Replace a pipe by several: a gather on the source chip, a unicast from one relay to another, a multicast on
        the destination chip, as far as it needs them. Raises RefusedError if no core has room."""
        account = self.account
        inputs = draft.inputs
        outputs = draft.outputs[0]
        chip = account.chip_of(inputs[0])
        other_chip = account.chip_of(outputs[0])
        old = Core(*draft.cores[0], draft.channel)
        in_dram = self._in_dram(draft)
        sources = self._sources(draft)
        one_source = not in_dram and len(sources) == 1
        account.disconnect(draft)
        del self.drafts[draft.id]
        if len(inputs) == 1:
            last = self._add_relay(other_chip, draft, outputs[0], inputs[0])
            middle = self._add_pipe(draft, inputs, (last.id,), to_relay=True)
            self._put_pipe(self._add_pipe(draft, [last.id], outputs, from_relay=True), old)
            self._put_pipe(middle, self._put_relay(last, [account.cores[buffer_id] for buffer_id in outputs]))
            return
        first = self._add_relay(chip, draft, outputs[0], inputs[0])
        if len(outputs) > 1:
            last = self._add_relay(other_chip, draft, outputs[0], inputs[0])
        else:
            last = None
        gather = self._add_pipe(draft, inputs, (first.id,), to_relay=True)
        end = None
        middle = None
        begins = old
        if last is not None:
            middle = self._add_pipe(draft, [first.id], (last.id,), from_relay=True, to_relay=True)
            end = self._add_pipe(draft, [last.id], outputs, from_relay=True)
            begins = self._choose_core(end, other_chip, [old])
            self._put_pipe(end, begins)
        if old.chip == chip:
            core = old
        else:
            core = self._choose_core(gather, chip, sources, first if in_dram else None, alone=one_source)
        if last is None and core.channel >= 0:
            message = f"{draft.source} would be gathered on an Ethernet core of chip {chip}"
            raise RefusedError("V364", message, _FEWER, draft.reader)
        if last is None:
            self._put_pipe(self._add_pipe(draft, [first.id], outputs, from_relay=True), core)
        self._put_pipe(gather, core)
        if in_dram:
            self._settle(first, core)
        else:
            self._put_relay(first, sources)
        if last is not None and middle is not None:
            self._put_pipe(middle, self._put_relay(last, [begins]))

    def _add_relay(self, chip: int, draft: Draft, output: int, piece_of: int) -> Hop:
        """Add and return a relay on a chip, on no core yet, for tiles that `draft` brings to the buffer `output`, in
        pieces as the buffer `piece_of` has them."""
        source = draft.inputs[0]
        hop = Hop(
            id=self._ids.new(),
            chip=chip,
            piece=self._piece_tiles(piece_of),
            epoch_tiles=self._epoch_tiles(output),
            tile_bytes=self.account.tile_of(source),
        )
        return self._register_relay(hop)

    def _register_relay(self, hop: Hop) -> Hop:
        """Enter a relay, which is on no core yet, in `made` and in the account, and return it."""
        self.made[hop.id] = hop
        self.account.add_relay(hop.id, hop.chip, hop.tile_bytes)
        return hop

    def _piece_tiles(self, id: int) -> int:
        """Return the tiles of a piece of a relay, of a queue in DRAM or of an op's buffer, given its id."""
        base = base_of(id)
        if base in self.made:
            return self.made[base].piece
        queue = self.account.queue_of(base)
        buffers = self.account.buffers.ops.made
        if queue is not None:
            return self.account.cuts[queue.name].tiles
        return buffers[base].scatter_gather_num_tiles

    def _epoch_tiles(self, id: int) -> int:
        """Return the tiles that pass a relay, a queue's buffer in DRAM or an op's buffer in an epoch, given its id."""
        base = base_of(id)
        if base in self.made:
            return self.made[base].epoch_tiles
        queue = self.account.queue_of(base)
        if queue is not None:
            return queue.blocking.tiles_per_core * self.account.epoch.input_count
        return self.account.buffers.ops.made[base].epoch_tiles

    def _add_pipe(
        self,
        draft: Draft,
        inputs: list[int],
        outputs: tuple[int, ...],
        *,
        from_relay: bool = False,
        to_relay: bool = False,
    ) -> Draft:
        """Add and return a pipe from `inputs` to `outputs`, on no core yet, for a part of the way of `draft`.
        `from_relay` and `to_relay` tell whether it reads, or fills, a relay."""
        base = base_of(inputs[0])
        part = replace(
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
        self.drafts[part.id] = part
        self.account.connect(part)
        return part

    def _put_pipe(self, draft: Draft, core: Core) -> None:
        """Put a pipe on a core, and count its needs there."""
        draft.cores = [(core.chip, *core.place)]
        draft.channel = core.channel
        self.account.carry(draft)

    def _choose_core(
        self, draft: Draft, chip: int, preferred: Sequence[Core], relay: Hop | None = None, *, alone: bool = False
    ) -> Core:
        """Return the first core that has room for a pipe, and for `relay` if there is one: a preferred core, else one
        of the chip; with `alone` preferred cores only. Nothing is counted yet. Raises RefusedError if there is none."""
        needs = self.account.needs_of(draft)
        wide = self.account.counter.wide
        if relay is None:
            size = -1
        else:
            size = relay.tile_bytes
        tried = set(preferred)
        for core in preferred:
            if self.account.budget(core).takes(needs, wide, size):
                return core
        for core, budget in () if alone else self.account.workers(chip):
            if core not in tried and budget.takes(needs, wide, size):
                return core
        message = f"no core of chip {chip} has room for what {draft.source or 'another chip'} sends on"
        raise RefusedError("V364", message, _FEWER, draft.reader)

    def _put_relay(self, hop: Hop, preferred: Sequence[Core]) -> Core:
        """Choose a worker core for a relay, put it there and return the core: the first preferred one with room, else
        one of the relay's chip. Raises RefusedError if none has room."""
        readers = [self.drafts[reader_id] for reader_id in self.account.readers.get(hop.id, ())]
        multicasts = sum(len(reader_id.outputs[0]) > 1 for reader_id in readers)
        stored = sum(self.account.queue_of(reader_id.outputs[0][0]) is not None for reader_id in readers)

        def takes(budget: CoreBudget) -> bool:
            """Return whether a core with this budget has room for the relay."""
            return budget.takes_relay(hop.tile_bytes, multicasts, len(readers), 0, stored)

        core = next((core for core in preferred if takes(self.account.budget(core))), None)
        if core is None:
            core = choose_core([(core, budget) for core, budget in self.account.workers(hop.chip) if takes(budget)])
        if core is None:
            raise RefusedError("V364", f"no core of chip {hop.chip} has room for a relay", _FEWER)
        return self._settle(hop, core)

    def _settle(self, hop: Hop, core: Core) -> Core:
        """Put a relay on a given core, number it there, count it, and return the core."""
        hop.core = core
        hop.number = self.account.place_relay(hop.id, core, hop.tiles)
        return core

    # Over links

    def _way_length(self, draft: Draft) -> int:
        """Return the number of links on the shortest way of a pipe that crosses chips; 0 if there is no way."""
        chip, other_chip = self._chips_of_ends(draft)
        return len(self.links.way(chip, other_chip, _unit_weight))

    def _chips_of_ends(self, draft: Draft) -> tuple[int, int]:
        """Return the chips of a unicast's source and target."""
        return self.account.chip_of(draft.inputs[0]), self.account.chip_of(draft.outputs[0][0])

    def _is_link(self, draft: Draft) -> bool:
        """Return whether a pipe's source and target lie on the two Ethernet cores of one link already."""
        near, far = (self.account.cores.get(base_of(buffer_id)) for buffer_id in (draft.inputs[0], draft.outputs[0][0]))
        if near is None or far is None or min(near.channel, far.channel) < 0:
            return False
        return self.links.connects((near.chip, near.channel), (far.chip, far.channel))

    def _ethernet_core(self, chip: int, channel: int) -> Core:
        """Return the Ethernet core of a channel of a chip."""
        return Core(chip, *ETHERNET_CORES[self.account.epoch.netlist.arch_name][channel], channel)

    def _budget(self, chip: int, channel: int) -> CoreBudget:
        """Return the budget of the Ethernet core of a channel of a chip."""
        return self.account.budget(self._ethernet_core(chip, channel))

    def _route(self, draft: Draft) -> None:
        """Replace a unicast between chips by relays at both ends of each link on its way, and the pipes between them.
        Raises RefusedError if no way has room."""
        account = self.account
        source = draft.inputs[0]
        target = draft.outputs[0][0]
        source_chip, other_chip = self._chips_of_ends(draft)
        from_dram = self._in_dram(draft)
        to_dram = account.queue_of(target) is not None
        steps = self.links.way(
            source_chip, other_chip, lambda a, b: self._step_weight(a, b, from_dram=from_dram, to_dram=to_dram)
        )
        if not steps:
            message = f"no Ethernet link from chip {source_chip} to chip {other_chip} has room for one more pipe"
            raise RefusedError("V362", message, _FEWER, draft.reader)
        piece = self._piece_tiles(source)
        tiles = self._epoch_tiles(source)
        size = account.tile_of(source)
        chosen = [
            self._choose_link(*step, size, from_dram and not number, to_dram and number == len(steps) - 1, draft)
            for number, step in enumerate(steps)
        ]
        account.disconnect(draft)
        del self.drafts[draft.id]
        ends: list[tuple[int, int]] = []
        for (near, far), channels in zip(steps, chosen, strict=True):
            pair: list[int] = []
            for chip, channel, end in zip((near, far), channels, (source, target), strict=True):
                core = self._ethernet_core(chip, channel)
                if account.cores.get(base_of(end)) == core:
                    pair.append(end)
                    continue
                hop = self._register_relay(
                    Hop(id=self._ids.new(), chip=chip, piece=piece, epoch_tiles=tiles, tile_bytes=size)
                )
                self._settle(hop, core)
                pair.append(hop.id)
            ends.append((pair[0], pair[1]))
            link = self._add_pipe(draft, [pair[0]], (pair[1],), from_relay=True, to_relay=True)
            link.link = True
            link.cores = [(far, *account.cores[base_of(pair[1])].place)]
        for (_, before), (after, _) in pairwise(ends):
            self._put_pipe(
                self._add_pipe(draft, [before], (after,), from_relay=True, to_relay=True), account.cores[after]
            )
        self._add_first_and_last(draft, ends[0][0], ends[-1][1])

    def _add_first_and_last(self, draft: Draft, first: int, last: int) -> None:
        """Add the pipes from the source of a routed unicast to the buffer `first`, where its links begin, and from the
        buffer `last`, where they end, to its target; none where the two are the same buffer."""
        account = self.account
        source = draft.inputs[0]
        target = draft.outputs[0][0]
        begin: Draft | None = None
        if first != source:
            begin = self._add_pipe(draft, [source], (first,), from_relay=draft.from_relay, to_relay=True)
            buffer = account.buffers.ops.made.get(base_of(source))
            self._put_pipe(begin, account.cores[base_of(source) if buffer is not None and buffer.is_scatter else first])
        if last != target:
            end = self._add_pipe(draft, [last], (target,), from_relay=True, to_relay=draft.to_relay)
            self._put_pipe(end, account.cores[last])
        if begin is not None and account.needs_of(begin).held:
            self._read_before_link(begin, first)

    def _read_before_link(self, draft: Draft, first: int) -> None:
        """Replace `draft`, a pipe that reads DRAM in pieces into the relay `first` of a link, by one into a new relay
        on a worker core, the one with least room left for it, and one from there to `first`. Raises RefusedError if no
        core has room."""
        account = self.account
        source = draft.inputs[0]
        account.disconnect(draft)
        del self.drafts[draft.id]
        first_hop = self.made[first]
        hop = self._register_relay(
            Hop(
                id=self._ids.new(),
                chip=first_hop.chip,
                piece=first_hop.piece,
                epoch_tiles=first_hop.epoch_tiles,
                tile_bytes=first_hop.tile_bytes,
            )
        )
        read = self._add_pipe(draft, [source], (hop.id,), to_relay=True)
        self._put_pipe(self._add_pipe(draft, [hop.id], (first,), from_relay=True, to_relay=True), account.cores[first])
        needs = account.needs_of(read)
        wide = account.counter.wide
        budgets = [
            (core, budget) for core, budget in account.workers(hop.chip) if budget.takes(needs, wide, hop.tile_bytes)
        ]
        if not budgets:
            raise RefusedError("V364", f"no core of chip {hop.chip} has room for a relay", _FEWER, draft.reader)
        core, _ = sort_as_vendor(budgets, lambda entry: entry[1].free_bytes)[0]
        self._put_pipe(read, core)
        self._settle(hop, core)

    def _step_weight(self, near: int, far: int, *, from_dram: bool, to_dram: bool) -> int:
        """Return the weight of the step between two neighbouring chips: the least use of those of its links that have a
        stream left, NO_WAY if none has. `from_dram` and `to_dram` tell whether the step begins, or ends, in DRAM."""
        least_use = NO_WAY
        for channel, other_channel in self.links.between(near, far):
            budget = self._budget(near, channel)
            other_budget = self._budget(far, other_channel)
            if (
                budget.can_transfer()
                and other_budget.can_transfer()
                and budget.can_read(from_dram)
                and other_budget.can_write(to_dram)
            ):
                least_use = min(least_use, max(budget.transfers, other_budget.transfers) + TRANSFERS)
        return least_use

    def _choose_link(
        self, near: int, far: int, size: int, from_dram: bool, to_dram: bool, draft: Draft
    ) -> tuple[int, int]:
        """Return the two channels of the link from chip `near` to chip `far` with the fewest buffers that has room for
        a relay with tiles of `size` bytes at each end. `from_dram` and `to_dram` tell whether the relays are filled
        from DRAM, or emptied into it. Raises RefusedError if none has room; the error names `draft`'s reader."""

        def greatest_use(link: tuple[int, int]) -> int:
            """Return the number of buffers on the fuller end of a link, given its two channels."""
            return max(self._budget(near, link[0]).buffers, self._budget(far, link[1]).buffers)

        for channel, other_channel in sort_as_vendor(self.links.between(near, far), greatest_use):
            sends = self._budget(near, channel).takes_transfer(size, from_dram=from_dram, to_dram=False)
            if sends and self._budget(far, other_channel).takes_transfer(size, from_dram=False, to_dram=to_dram):
                return channel, other_channel
        message = f"no Ethernet link from chip {near} to chip {far} has room for one more relay"
        raise RefusedError("V362", message, _FEWER, draft.reader)


def _unit_weight(_near: int, _far: int) -> int:
    """Return 1 for any step between two chips, so that the shortest way has the fewest links."""
    return 1
