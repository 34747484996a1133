"""`be.advise`: finds changes that make a netlist faster."""

from collections.abc import Sequence
from contextlib import closing
from os import fspath
from typing import TYPE_CHECKING, Unpack, cast

from buda_emu.app.api.diff import compare
from buda_emu.app.api.perf import chip_of, chip_of_source
from buda_emu.app.api.sources import compiled_of, is_path, open_source
from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.emulator.image.opened import is_image
from buda_emu.emulator.image.rules import ImageError
from buda_emu.emulator.inputs.entries import check_parameters, default_parameters, select_programs
from buda_emu.emulator.options import Chip, Programs, Seed, SharedWork
from buda_emu.netlist.load import check_bytes
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.printer import netlist_text
from buda_emu.netlist.test_config import read_test_config
from buda_emu.netlist.yaml_reader import UnreadableError, read_bytes
from buda_emu.performance.advice.accuracy import Accuracy
from buda_emu.performance.advice.edits import merge_edits
from buda_emu.performance.advice.evaluate import Evaluator
from buda_emu.performance.advice.moves import MOVES
from buda_emu.performance.advice.moves.move import Move
from buda_emu.performance.advice.patch import check_patch
from buda_emu.performance.advice.result import Advice
from buda_emu.performance.advice.search import Search
from buda_emu.spec.boards import agreed_arch
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, InternalError, NetlistError
from buda_emu.support.options import document_path, integer_of, names_of, number_of, with_options
from buda_emu.support.progress import Report
from buda_emu.support.workers.job import workers_of

if TYPE_CHECKING:
    from buda_emu.app.api.sources import Source

DEFAULT_TRIES = 160  # epochs that are modelled (docs/timing/advise.md)
DEFAULT_LOSS = 1e-3  # sum of the losses of PCC by the changes that are taken


class AdviceOptions(Programs, Chip, Seed, SharedWork, total=False):
    """The options of `advise` that other functions have, too."""


@with_options
def advise(
    source: "Source",
    *,
    moves: str | Sequence[str] = (),
    most_loss: float = DEFAULT_LOSS,
    tries: int = DEFAULT_TRIES,
    progress: Report | None = None,
    **options: Unpack[AdviceOptions],
) -> Advice:
    """Search for changes of a netlist, such as a compiler engineer would try, that make it faster; nothing is written.

    `source` is a netlist, an image, a compiled or loaded model, or the path of a netlist or image. `board` is the board
    whose chips the netlist runs on, as for `perf`. `moves` are names of `advice.moves.MOVES`; the default is all.
    `most_loss` is the PCC against float32 that all changes together may cost, added up over the ops that they touch.
    `tries` is the largest number of epochs that are modelled. `seed` draws the operands that accuracy is measured on.
    `workers` processes, or the Dask cluster whose scheduler is at `dask`, model the proposals; the advice does not
    depend on them.

    Raises NetlistError, HostError (no such program, parameter, move), ProgramError as the run would, UnsupportedError.
    """
    board = options.get("board")
    arch = agreed_arch(board, options.get("arch"))
    most_loss = number_of("most_loss", most_loss, 0)
    tries = cast("int", integer_of("tries", 1)(tries))
    selected_moves = _select_moves(names_of(moves))
    data, netlist = _read_source(source, arch, board)
    bodies = select_programs(netlist, options.get("programs", ()))
    config = read_test_config(netlist.path, netlist.sections)
    values = {**default_parameters(bodies, config.args), **check_parameters(bodies, options.get("parameters") or {})}
    if board:
        chip = chip_of(netlist.arch_name, board=board)
    else:
        chip = chip_of_source(source) or chip_of(netlist.arch_name)
    with (
        reported_work(progress) as report,
        closing(
            Evaluator(netlist=netlist, programs=bodies, parameters=values, chip=chip, workers=workers_of(options))
        ) as evaluator,
    ):
        search_result = Search(
            data=data,
            evaluator=evaluator,
            accuracy=Accuracy(options.get("seed", 0)),
            most_loss=most_loss,
            tries=tries,
            moves=selected_moves,
            progress=report,
        ).run()
    text = data
    after = search_result.best
    if search_result.taken:
        text, patched = check_patch(data, netlist, merge_edits(search_result.best.edits))
        if patched.netlist is None:
            raise InternalError(f"{netlist.path}: the netlist with all changes is not accepted any more")
        after = evaluator.again(search_result.best, patched.netlist)
    return Advice(
        netlist=netlist.path,
        arch=netlist.arch_name,
        found=search_result,
        after=after,
        text=text,
        tries=evaluator.tries,
        chip=evaluator.chip,
    )


def _select_moves(names: Sequence[str]) -> list[Move]:
    """Return the moves of these names, all if there are none. Raises HostError for an unknown name."""
    move_of = {move.name: move for move in MOVES}
    for name in names:
        if name not in move_of:
            hint = near(name, list(move_of))
            raise HostError(f"no move {name!r}{f' ({hint})' if hint else ''}; moves: {', '.join(move_of)}")
    return [move_of[name] for name in names] or list(MOVES)


def _read_source(source: "Source", arch: str | None, board: str | None = None) -> tuple[bytes, Netlist]:
    """Return the netlist of a source with the bytes of its text. Raises as `open_source`."""
    if is_path(source) and not is_image(document_path(source, "advise")):
        return _read_netlist(fspath(source), arch)
    opened = open_source(source, arch, board, function="advise", allow_pickle=True)
    if opened.image is not None:
        return opened.image.netlist_text(), opened.netlist
    compiled = compiled_of(source)
    if compiled is not None:
        return compiled.text.encode(), compiled.netlist
    return _text_of(opened.netlist)


def _text_of(netlist: Netlist) -> tuple[bytes, Netlist]:
    """Return the bytes of a text of a netlist, and the netlist that they parse to: the file that it was loaded from,
    with its comments, if that still gives the same netlist, else the text that `buda-emu fmt` would write."""
    archive, in_archive, _ = netlist.path.partition("!")
    try:
        if in_archive and is_image(archive):
            from_file = _read_source(archive, netlist.arch_name)
        else:
            from_file = _read_netlist(netlist.path, netlist.arch_name)
    except (NetlistError, ImageError, OSError):
        from_file = None
    if from_file is not None and _say_the_same(from_file[1], netlist):
        return from_file
    data = netlist_text(netlist).encode()
    return data, _check(data, netlist.path, netlist.arch_name)


def _say_the_same(first: Netlist, second: Netlist) -> bool:
    """Return whether two netlists have equal objects, programs and test-args."""
    first_args = read_test_config(first.path, first.sections).args
    second_args = read_test_config(second.path, second.sections).args
    return first_args == second_args and compare(first, second, first.path, second.path).same


def _read_netlist(path: str, arch: str | None) -> tuple[bytes, Netlist]:
    """Return the bytes of a netlist file, and the netlist. Raises NetlistError."""
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        findings = (error.diagnostic(path),)
        raise NetlistError(render(findings), findings) from None
    return data, _check(data, path, arch)


def _check(data: bytes, path: str, arch: str | None) -> Netlist:
    """Parse and check the bytes of a netlist; `path` names it in findings, `arch` is the architecture where the text
    leaves it open. Raises NetlistError if there are errors."""
    result = check_bytes(data, path, arch)
    if result.netlist is None:
        raise NetlistError(render(result.diagnostics), result.diagnostics)
    return result.netlist
