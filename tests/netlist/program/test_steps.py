import pytest

from buda_emu.netlist.program.interpreter import StepBudget
from buda_emu.support.errors import ProgramError


def test_as_many_steps_as_are_left_may_be_required():
    steps = StepBudget(3, 3)
    steps.require(3, "loops")
    with pytest.raises(ProgramError, match="loops take at least 4 instructions, 3 of 3 are left"):
        steps.require(4, "loops")
