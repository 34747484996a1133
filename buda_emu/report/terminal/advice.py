"""Advice as tables for a terminal."""

from collections.abc import Iterator

from buda_emu.performance.advice.accuracy import Loss
from buda_emu.performance.advice.result import Advice
from buda_emu.report.terminal.text import prose, relative, table, whole, wrap
from buda_emu.support.checker.text import plural

_TOP = 10  # moves that are printed: those below gain little beside them


def advice_lines(advice: Advice, top: int = _TOP) -> Iterator[str]:
    """Yield the advice as lines: candidates, the moves taken, the Pareto front and the total. `top` limits the rows
    of each table; 0 shows all."""
    before = advice.before
    after = advice.after
    slowest = max(before.reports, key=lambda report: report.pace, default=None)
    if slowest is None:
        yield f"{advice.netlist}: its programs run no ops"
        return
    graphs = " + ".join(slowest.graphs)
    count = plural(len(before.reports), "epoch")
    yield f"{advice.netlist}: {advice.chip.title}, {count}, the slowest is {graphs}: {slowest.bottleneck.sentence}"
    yield from _single_move_lines(advice, top)
    yield from _taken_move_lines(advice, top)
    yield from _pareto_lines(advice, top)
    yield ""
    if not advice.found.taken:
        yield wrap(advice.reason)
        yield from _unsplit_op_lines(advice)
        return
    yield (
        f"slowest epoch: {whole(before.slowest)} cycles for each input, then {whole(after.slowest)} "
        f"({_percent_text(before.slowest, after.slowest)})"
    )
    yield (
        f"all programs: {whole(before.cycles)} cycles, then {whole(after.cycles)} "
        f"({_percent_text(before.cycles, after.cycles)}); PCC lost: {_pcc_loss_text(advice.lost)}"
    )
    yield f"loading epochs takes {whole(before.loading)} of these cycles, then {whole(after.loading)}"
    if 2 * after.loading > after.cycles:
        yield "an execute loads its epoch once for all inputs: with more of them (input_count) it is loaded less often"
    for proposal, _ in advice.found.taken:
        if proposal.host:
            yield f"the host then {proposal.host}"
    yield from _unsplit_op_lines(advice)


def _unsplit_op_lines(advice: Advice) -> Iterator[str]:
    """Yield a sentence for each op that bounds its epoch while cores are free."""
    for entry in advice.found.unsplit:
        epoch = " + ".join(entry.graphs)
        cores = f"{entry.cores} cores"
        if entry.cores == 1:
            cores = "one core"
        yield from prose(f"op {entry.op} bounds {epoch} on {cores} while cores are free: {entry.reason}")


def _single_move_lines(advice: Advice, top: int) -> Iterator[str]:
    """Yield a table of moves, what each would save by itself, the best first."""
    ranked = advice.ranked
    if not ranked:
        return
    rows = [
        (
            whole(candidate.saved),
            _percent_text(candidate.before, candidate.after),
            _loss_text(candidate.loss),
            candidate.proposal.move,
            " + ".join(advice.before.reports[candidate.epoch].graphs),
            candidate.proposal.sentence,
        )
        for candidate in ranked[: top or None]
    ]
    yield "\nalone: cycles that an input of the epoch is spared"
    yield table(("cycles", "%", "PCC lost", "move", "epoch", "what"), rows, right=(0, 1, 2), prose=(5,))
    yield from _hidden_rows_line(len(ranked), top)


def _taken_move_lines(advice: Advice, top: int) -> Iterator[str]:
    """Yield a table of the moves that the advice takes, each on top of those before it; nothing if there are none."""
    moves = advice.found.taken
    if not moves:
        return
    rows = [
        (str(number), whole(variant.slowest), whole(variant.cycles), _loss_text(loss), proposal.move, proposal.sentence)
        for number, ((proposal, loss), variant) in enumerate(zip(moves, advice.found.steps, strict=True), 1)
    ]
    yield "\ntogether: each on top of those before it"
    yield table(
        ("#", "slowest", "all cycles", "PCC lost", "move", "what"), rows[: top or None], right=(0, 1, 2, 3), prose=(5,)
    )
    yield from _hidden_rows_line(len(rows), top)


def _pareto_lines(advice: Advice, top: int) -> Iterator[str]:
    """Yield the table of the Pareto front, if it has more than one netlist."""
    front = advice.front()
    if len(front) < 2:
        return
    rows = [
        (whole(variant.cycles), whole(variant.slowest), _pcc_loss_text(variant.lost), variant.what)
        for variant in front[: top or None]
    ]
    yield "\nPareto front: no other netlist that was modelled is faster and as exact"
    yield table(("all cycles", "slowest", "PCC lost", "with"), rows, right=(0, 1, 2), prose=(3,))
    yield from _hidden_rows_line(len(front), top)


def _hidden_rows_line(count: int, top: int) -> Iterator[str]:
    """Yield a line on the rows that a table of `count` rows leaves out if only `top` are shown; nothing if `top` is 0,
    for all."""
    if top and count > top:
        yield f"... and {count - top} more (--top 0 shows all)"


def _percent_text(before: float, after: float) -> str:
    """Return the change from `before` to `after` in per cent as text, "-" if it cannot be computed."""
    share = relative(before, after)
    return share if share == "-" else f"{share} %"


def _loss_text(loss: Loss | None) -> str:
    """Return the loss of PCC of a move as text: "exact" for a move without one, "unknown" where it could not be
    measured.
    """
    if loss is None:
        return "exact"
    return "unknown" if loss.reason else _pcc_loss_text(loss.pcc_lost)


def _pcc_loss_text(lost: float) -> str:
    """Return a loss of PCC as text with two digits, "none" for 0."""
    return "none" if lost == 0 else f"{lost:.2g}"
