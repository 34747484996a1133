"""Old module names lead to the present modules, with a warning."""

import subprocess
import sys
from importlib import import_module

import pytest

from buda_emu.support.moved import PLACES, REMOVED_IN, present_name


def run_python(statements, environment, *options):
    command = [sys.executable, *options, "-c", statements]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("place", sorted(PLACES.values()))
def test_every_place_exists(place):
    import_module(f"buda_emu.{place}")


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("buda_emu.timing", "op_cycles"),
        ("buda_emu.gemini", "load"),
        ("buda_emu.vpux", "load"),
        ("buda_emu.darwinn", "load"),
        ("buda_emu.backend_api", "BackendApi"),
        ("buda_emu.ops.base", "Implementation"),
        ("buda_emu.formats.bits", "to_bits"),
    ],
)
def test_an_old_name_warns_and_gives_the_same_object(old, name, child_environment):
    present = present_name(old)
    statements = (
        f"import warnings; warnings.simplefilter('ignore')\nimport {present} as present\n"
        f"warnings.simplefilter('error')\n"
        f"try:\n    import {old}\nexcept DeprecationWarning as warning:\n    print(warning)\n"
        f"warnings.simplefilter('ignore')\nfrom {old} import {name}\nassert {name} is present.{name}\n"
        f"import sys; assert sys.modules['{old}'] is present\n"
    )
    done = run_python(statements, child_environment)
    assert done.returncode == 0, done.stderr
    top = ".".join(old.split(".")[:2])
    assert done.stdout == f"{top} is now {present_name(top)}; the old name goes in {REMOVED_IN}\n"


def test_a_module_that_never_was_is_missed_by_its_name(child_environment):
    done = run_python("import buda_emu.gemini.nothing", child_environment, "-W", "ignore")
    assert "ModuleNotFoundError" in done.stderr
    assert "buda_emu.foreign.gemini.nothing" in done.stderr


def test_present_names_are_left_alone():
    assert present_name("buda_emu.spec.formats") is None
    assert present_name("buda_emu.testing.generator") is None
    assert present_name("numpy.testing") is None


def test_the_old_name_of_the_class_that_ops_take_works_with_a_warning():
    from buda_emu.emulator.ops import base

    with pytest.warns(DeprecationWarning, match="now PlannedOp"):
        assert base.OpCall is base.PlannedOp
    with pytest.raises(AttributeError):
        base.OpCalls  # noqa: B018 - the access is the test
