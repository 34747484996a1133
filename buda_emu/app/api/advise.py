"""`be.advise`: finds changes that make a netlist faster, in one call."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike, fspath

from buda_emu.app.api.perf import chip_of
from buda_emu.emulator.inputs.entries import check_parameters, default_parameters, select_programs
from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.test_config import read_test_config
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.performance.advice.accuracy import Accuracy
from buda_emu.performance.advice.edits import merge_edits
from buda_emu.performance.advice.evaluate import Evaluator
from buda_emu.performance.advice.moves import MOVES
from buda_emu.performance.advice.patch import check_patch
from buda_emu.performance.advice.result import Advice
from buda_emu.performance.advice.search import Search
from buda_emu.spec.boards import agreed_arch
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, InternalError, NetlistError
from buda_emu.support.workers.job import Workers

DEFAULT_TRIES = 160
DEFAULT_LOSS = 1e-3


def advise(
    source: str | PathLike[str],
    *,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    arch: str | None = None,
    board: str | None = None,
    moves: Sequence[str] = (),
    most_loss: float = DEFAULT_LOSS,
    tries: int = DEFAULT_TRIES,
    seed: int = 0,
    workers: int = 1,
    dask: str | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Try what a compiler engineer tries on the netlist of that path; nothing is written.

    `board`: whose chips the netlist runs on, as for `perf`. `moves`: names of `advice.moves.MOVES`, default all.
    `most_loss`: of PCC against float32, that the changes together may cost the ops that they touch, added up. `tries`:
    epochs that are modelled at most. `seed`: of the operands that accuracy is measured on. `workers`: processes that
    model proposals, or the Dask cluster whose scheduler is at `dask`; the advice does not depend on them.

    Raises NetlistError, HostError (no such program, parameter, move), ProgramError as the run would, UnsupportedError.
    """
    path = fspath(source)
    arch = agreed_arch(board, arch)
    known = {move.name: move for move in MOVES}
    for name in moves:
        if name not in known:
            hint = near(name, list(known))
            raise HostError(f"no move {name!r}{f' ({hint})' if hint else ''}; moves: {', '.join(known)}")
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        raise NetlistError(str(error), (error.diagnostic(path),)) from None
    result = check_bytes(data, path, arch)
    netlist = result.netlist
    if netlist is None:
        raise NetlistError(render(result.diagnostics), result.diagnostics)
    bodies = select_programs(netlist, programs)
    config = read_test_config(netlist.path, netlist.sections)
    values = {**default_parameters(bodies, config.args), **check_parameters(bodies, parameters or {})}
    on = Workers(workers, dask)
    chosen = [known[name] for name in moves] or list(MOVES)
    with closing(
        Evaluator(
            netlist=netlist,
            programs=bodies,
            parameters=values,
            chip=chip_of(netlist.arch_name, board=board),
            workers=on,
        )
    ) as evaluator:
        found = Search(
            data=data,
            evaluator=evaluator,
            accuracy=Accuracy(seed),
            most_loss=most_loss,
            tries=tries,
            moves=chosen,
            progress=progress,
        ).run()
    text = data
    after = found.best
    if found.taken:
        text, again = check_patch(data, netlist, merge_edits(found.best.edits))
        if again.netlist is None:
            raise InternalError(f"{path}: the netlist with all changes is not accepted any more")
        after = evaluator.again(found.best, again.netlist)
    return Advice(
        netlist=netlist.path,
        arch=netlist.arch_name,
        found=found,
        after=after,
        text=text,
        tries=evaluator.tries,
        chip=evaluator.chip,
    )
