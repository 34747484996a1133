"""Ctrl-C comes later where KeyboardInterrupt would get lost, and at once everywhere else."""

import signal
import sys
import time
from collections.abc import Iterator
from importlib import _bootstrap  # type: ignore[attr-defined]
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import ModuleType

import pytest

from buda_emu.support.interrupt import interrupt


@pytest.fixture(autouse=True)
def _handled() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


class Extension(ExtensionFileLoader):
    """Loads a module that makes an ImportError of the interrupt that comes meanwhile."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError(f"{module.__name__} failed to import") from None


def _load_extension() -> None:
    Extension("rude", "rude.so").exec_module(ModuleType("rude"))
    time.sleep(20)


def _drop_lock() -> None:
    def trace(frame, *_: object) -> None:
        if frame.f_code.co_name == "cb":
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)

    sys.settrace(trace)
    _bootstrap._get_module_lock("nobody")
    time.sleep(20)


@pytest.mark.parametrize("work", [_load_extension, _drop_lock, lambda: signal.raise_signal(signal.SIGINT)])
def test_it_comes_when_it_can_be_raised(work, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - begun < 10
    assert not capsys.readouterr().err
