"""A sweep over boards of a model, or of an image that holds its model: each board gets a netlist of its own."""

from collections.abc import Callable
from functools import partial

from buda_emu.app.api.sweep import Point, PointTask, SweepConditions, modeller_by_board
from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.image_source import compile_again
from buda_emu.emulator.image.opened import is_image
from buda_emu.netlist.model import Netlist
from buda_emu.support.errors import BudaError
from buda_emu.support.progress import SendKernel, do_nothing


def modeller(about: SweepConditions, report: SendKernel = do_nothing) -> Callable[[PointTask], Point]:
    """Return the function that compiles a model for the board of a point, each board once in a process, and models the
    netlist there. `report` gets the kernels that are compiled meanwhile, for the other processes."""
    return modeller_by_board(about, partial(_compile_for, str(about.netlist)), report)


def _compile_for(path: str, board: str) -> Netlist | BudaError:
    """Compile the model at `path`, or again the model of an image, for a board. Returns the netlist, or the error of
    the compilation."""
    try:
        if is_image(path):
            return compile_again(path, board).netlist
        return compile_model(path, board=board).netlist
    except BudaError as error:
        return error
