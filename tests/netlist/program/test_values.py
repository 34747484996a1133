import pytest

from buda_emu.netlist.program.settings import Kind, Variables
from buda_emu.support.errors import ProgramError


def test_only_parameters_are_parameters_and_names_are_told():
    variables = Variables()
    variables.begin_run({"$n": "3"})
    variables.bind_param("$n")
    variables.declare("$a", Kind.LOCAL, 1)
    assert variables.is_param("$n")
    assert not variables.is_param("$a")
    assert not variables.is_param("3")
    with pytest.raises(ProgramError, match=r"unknown variable \$b; known: \$a, \$n$"):
        variables.value("$b")
