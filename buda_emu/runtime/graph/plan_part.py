"""What one of several machines does of a plan: which steps, which values it gets from others, and whom it gives its own
(`machine/part.py`). It follows from the plan and the owners of ops and queues alone, so all machines agree on it.
"""

from collections.abc import Set

from buda_emu.records import dataclass
from buda_emu.runtime.graph.steps import Convert, Plan, Read, Run, Same, reads_of
from buda_emu.runtime.machine.part import Part

_NOBODY = -1


@dataclass(frozen=True, slots=True)
class Duties:
    """Of each step: `source`, whose value it is (its own number: it does the step; -1: it has nothing to do with it),
    and `targets`, to whom it gives the value. `pushes`: which of the plan's pushes it stores. `computed`: values that
    it computes itself. `late`: values of others that it only stores, in queues that may be written late."""

    source: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]
    pushes: tuple[bool, ...]
    computed: frozenset[int]
    late: frozenset[int]


def duties(plan: Plan, part: Part, queues: Set[str]) -> Duties:
    """Those of one machine. `queues`: those that may be written late."""
    needed: list[set[int]] = [set() for _ in plan.tiles]
    for push in plan.pushes:
        needed[push.value] |= part.keepers(push.queue)
    source: list[int] = []
    targets: list[tuple[int, ...]] = []
    own = part.number
    for step in reversed(plan.steps):
        who, making = needed[step.value], False
        match step:
            case Run():
                having = frozenset({part.owner(step.op.name)})
                making = own in having
                for value in step.inputs:
                    needed[value] |= having
            case Read():
                having = part.keepers(step.queue)
            case Convert():  # whoever needs it makes it of what it is made of
                needed[step.source] |= who
                having = frozenset(who)
            case Same():  # it makes nothing, and nobody watches
                source.append(_NOBODY)
                targets.append(())
                continue
        giver, without = min(having, default=_NOBODY), who - having
        making = making or (own in having and (own in who or (own == giver and bool(without))))
        source.append(own if making else giver if own in without else _NOBODY)
        targets.append(tuple(sorted(without)) if own == giver else ())
    source.reverse()
    targets.reverse()
    runs = (step.value for step, who in zip(plan.steps, source, strict=True) if who == own and isinstance(step, Run))
    pushes = tuple(own in part.keepers(push.queue) for push in plan.pushes)
    late = {step.value for step, who in zip(plan.steps, source, strict=True) if who not in (own, _NOBODY)}
    for step, who in zip(plan.steps, source, strict=True):
        if who == own:
            late.difference_update(reads_of(step))
    late.difference_update(push.value for push in plan.pushes if push.queue not in queues)
    return Duties(tuple(source), tuple(targets), pushes, frozenset(runs), frozenset(late))
