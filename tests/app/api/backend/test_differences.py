"""The module is the compiled one's, but for what the table of differences says (NETLIST 7, 12)."""

import inspect

import pytest

from app.api.backend.binding import CLASSES, ENUMS, FUNCTIONS
from app.api.backend.small import machine
from backend_differences import DIFFERENCES
from buda_emu.app import backend_api as api

NAMED = {name for difference in DIFFERENCES for name in difference.names}
CONVERSIONS = {"to_json", "from_json"}  # harmless on the enums that do without them


def instance(name, tmp_path):
    """One of each class, as a caller gets it."""
    if name in ENUMS:
        return next(iter(getattr(api, name).__members__.values()))
    if name == "BackendConfig":
        return api.get_golden_config()
    if name == "BackendApi":
        return machine(tmp_path)[0]
    if name == "DramIODesc":
        return machine(tmp_path)[1]["a"]
    made = {"DeviceGrid": lambda: api.DeviceGrid((1, 1)), "DeviceConfig": lambda: api.DeviceConfig("grayskull")}
    return made.get(name, getattr(api, name))()


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_names():
    there = CLASSES.keys() | FUNCTIONS.keys()
    assert set(api.__all__) >= there
    assert set(api.__all__) - there == {name for name in NAMED if "." not in name} - there


@pytest.mark.parametrize("name", CLASSES)
def test_attributes(name, tmp_path):
    here, there = public(instance(name, tmp_path)), set(CLASSES[name])
    assert here >= there
    if name in ENUMS:
        assert here - there - CONVERSIONS == set(getattr(api, name).__members__)
    else:
        assert here - there == {item.partition(".")[2] for item in NAMED if item.startswith(f"{name}.")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments(name):
    function, there = getattr(api, name), FUNCTIONS[name]
    if there is None:
        assert callable(function)
        return
    parameters = inspect.signature(function).parameters
    assert list(parameters) == list(there)
    for argument, default in there.items():
        here = parameters[argument].default
        if default is ...:
            assert here is inspect.Parameter.empty or name in NAMED
        else:
            assert str(here) == str(default)


def test_the_table_speaks_of_names_that_there_are():
    for name in NAMED:
        kind, _, _ = name.partition(".")
        assert hasattr(api, kind), name
    assert len({(difference.there, difference.here, difference.names) for difference in DIFFERENCES}) == len(
        DIFFERENCES
    )
