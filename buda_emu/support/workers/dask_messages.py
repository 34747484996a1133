"""Messages of a Dask cluster, read without running what they name. Dask's messages hold pickles, and the pickles of a
scheduler or worker that lies call any function; which serializers its client is given changes nothing about that.

So a client of ours has an event loop of its own, and whatever that loop reads is unpickled here: plain values, and
exceptions of a few packages. Other classes become `UnknownObject`. Other clients of the process are left alone.
"""

import asyncio
import importlib
import io
import pickle
import sys
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Event, Thread
from types import new_class
from typing import Any, Final, cast

_GUARDED: ContextVar[bool] = ContextVar("buda_emu_dask_guarded", default=False)
"""Whether the code that asks runs for a client of ours. Dask hands contexts on to the threads that it uses."""
_READERS: Final = ("distributed.protocol.pickle", "distributed.client")  # the modules of Dask that call pickle.loads
_PLAIN: Final = {name: getattr(__import__("builtins"), name) for name in ("bytes", "bytearray", "memoryview", "set")}
"""Types whose names pickles of plain data hold; numbers, texts, lists and dicts have opcodes."""
_EXCEPTIONS_OF: Final = frozenset({"builtins", "buda_emu", "dask", "distributed", "asyncio", "concurrent", "tornado"})


class UnknownObject(Exception):  # noqa: N818 - it takes the place of any object, often of an exception
    """The stand-in for an object of a class that is not listed: it has the attributes and no behaviour."""

    def __init__(self, *arguments: object, **_named: object) -> None:
        super().__init__(*arguments)

    def __setstate__(self, state: Any) -> None:
        """Take over the attributes of a pickle: a dict, or a pair of them."""
        parts: list[Any] = [state]
        if isinstance(state, tuple):
            parts = [*cast("tuple[Any, ...]", state)]
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update(cast("dict[str, Any]", part))

    def __call__(self, *_arguments: object, **_named: object) -> "UnknownObject":
        """Stand in for what this object would have returned."""
        return UnknownObject()

    def append(self, _value: object) -> None:
        """Drop an item that a pickle appends."""

    def extend(self, _values: object) -> None:
        """Drop items that a pickle appends."""

    def __setitem__(self, _key: object, _value: object) -> None:
        """Drop an item that a pickle sets."""


class _NoTraceback:
    """The traceback of an exception, which is left out."""

    def __new__(cls, *_arguments: Any) -> Any:
        return None

    def __setstate__(self, state: object) -> None:
        """Let a pickle that would set attributes of this class fail."""


class _WithCauses:
    """An exception pickled by `tblib` with its causes and traceback, which are left out."""

    def __new__(cls, kind: Any, content: Any, *_more: Any) -> Any:
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            return UnknownObject()
        if isinstance(content, tuple):
            return kind(*cast("tuple[Any, ...]", content))
        exception = kind.__new__(kind)
        exception.args = tuple(content["args"])
        exception.__dict__.update(content["__dict__"])
        return exception

    def __setstate__(self, state: object) -> None:
        """Let a pickle that would set attributes of this class fail."""


_OF_TBLIB: Final[dict[str, type]] = {
    "unpickle_traceback": _NoTraceback,
    "unpickle_exception": _WithCauses,
    "unpickle_exception_with_attrs": _WithCauses,
}


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that neither imports nor calls what a pickle names, but for listed classes."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of that name where it is listed, and a stand-in of its name for any other."""
        if module == "builtins" and name in _PLAIN:
            return _PLAIN[name]
        if module == "tblib.pickling_support" and name in _OF_TBLIB:
            return _OF_TBLIB[name]
        if module.partition(".")[0] in _EXCEPTIONS_OF:
            value = vars(sys.modules.get(module, object)).get(name)
            if isinstance(value, type) and issubclass(value, Exception):
                return value
        return new_class(name, (UnknownObject,))


class _Pickle:
    """The module `pickle` as Dask sees it: `loads` is a plain one for clients of ours."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pickle, name)

    def loads(self, data: Any, /, *, buffers: Any = None, **more: Any) -> Any:
        """Return the object of a pickle."""
        if not _GUARDED.get():
            return pickle.loads(data, buffers=buffers, **more)
        return _PlainUnpickler(io.BytesIO(data), buffers=buffers).load()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse pickles that Dask reads for a client of ours in another way than by `_Pickle`, such as a later version of
    it might."""
    if event == "pickle.find_class" and _GUARDED.get():
        raise pickle.UnpicklingError(f"a message names {'.'.join(map(str, arguments))}, which is not called")


@cache
def _guard() -> None:
    """Put the readers into Dask's modules; once for each process."""
    for name in _READERS:
        module = importlib.import_module(name)
        if getattr(module, "pickle", None) is pickle:
            module.__dict__["pickle"] = _Pickle()
    sys.addaudithook(_refuse)


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> Any:
    """Make a task whose context is guarded, whoever begins it."""
    _GUARDED.set(True)
    context = more.get("context")
    if context is not None:
        context.run(_GUARDED.set, True)
    return asyncio.Task(coroutine, loop=loop, **more)


async def read_plainly(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that talks with a cluster, in a task of its own."""
    _guard()
    return await _task(asyncio.get_running_loop(), coroutine)


@contextmanager
def guarded_loop() -> Generator[Any, None, None]:
    """Give a running event loop for one client of Dask, as tornado's `IOLoop`, and end it after the block."""
    from tornado.ioloop import IOLoop

    _guard()
    begun = Event()
    loops: list[Any] = []

    async def run() -> None:
        """Keep the loop until it is to end."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(_task)
        end = asyncio.Event()
        loops.extend((IOLoop.current(), loop, end))
        begun.set()
        await end.wait()

    def main() -> None:
        """Run the loop on this thread, whose callbacks are guarded, too."""
        _GUARDED.set(True)
        asyncio.run(run())

    thread = Thread(target=main, name="buda-emu dask", daemon=True)
    thread.start()
    begun.wait()
    try:
        yield loops[0]
    finally:
        loops[1].call_soon_threadsafe(loops[2].set)
        thread.join(_END_SECONDS)


_END_SECONDS: Final = 5.0
"""Seconds for which the end of a loop is waited for; a thread that hangs ends with the process."""
