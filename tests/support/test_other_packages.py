"""Which package an exception came from: the innermost frame of this package, or of one that adds to it, decides."""

from importlib.metadata import EntryPoint

import pytest

from buda_emu.support.other_packages import OPS, package_at_fault

ADDING = EntryPoint(name="softsign", value="softsign.declaration:SOFTSIGN", group=OPS)


def traceback_of(*modules):
    """The traceback of an exception that was raised in the last of these modules, each called by the one before."""

    def fail():
        raise ValueError("a fault")

    call = fail
    for module in reversed(modules):
        scope = {"__name__": module, "called": call}
        exec("def call():\n    called()", scope)
        call = scope["call"]
    with pytest.raises(ValueError, match="a fault") as raised:
        call()
    return raised.value.__traceback__


@pytest.mark.parametrize(
    ("modules", "package"),
    [
        (("buda_emu.app",), ""),
        (("buda_emu.app", "softsign.op"), "softsign"),
        (("buda_emu.app", "softsign.op", "numpy.linalg"), "softsign"),
        (("buda_emu.app", "softsign.op", "buda_emu.arithmetic"), ""),
        (("buda_emu.app", "softsigns.op"), ""),
        (("softsign",), "softsign"),
    ],
)
def test_whose_code_an_exception_came_from(modules, package, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [ADDING] if group == OPS else [])
    assert package_at_fault(traceback_of(*modules), this_package="buda_emu") == package


def test_no_traceback_blames_nobody():
    assert package_at_fault(None, this_package="buda_emu") == ""
