"""torch.export of a module: what keeps torch from tracing it is said with the model's line."""

import contextlib
import io
import logging
import sysconfig
import traceback
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._python_dispatch import (
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from buda_emu.errors import HostError


def traced(module: Any, tensors: Sequence[Any], name: str, *, gradients: bool = False) -> tuple[Any, bool]:
    """The ExportedProgram of a module, and whether it is right only where its assertions hold: where the model decides
    in Python by values, torch takes what example inputs decide, and asserts it. Raises HostError."""
    try:
        with _quietly(gradients):
            program = torch.export.export(module, tuple(tensors))
    except Exception as error:  # noqa: BLE001 - whatever keeps torch from tracing
        reason = str(error).strip().splitlines()
        refusal = HostError(
            f"compile: torch.export cannot trace {name}: {reason[0] if reason else repr(error)}{_where(error)}"
        )
        found = _decided(module, tensors, gradients) if isinstance(error, GuardOnDataDependentSymNode) else None
        if found is None:
            raise refusal from None
        return found, True
    return program, False


@contextlib.contextmanager
def _quietly(gradients: bool) -> Generator[None]:
    """While torch traces: with gradients or without, and without the graph of what it refuses, which it prints. A
    module that its model asks to be of the type it has stays as it is: torch puts no parameters into a module that it
    traces."""
    kind: Any = torch.nn.Module
    convert = kind._apply

    def converted(module: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
        with _disable_current_modes():
            types = {(item.dtype, item.device) for item in (*module.parameters(), *module.buffers())}
            examples = [torch.empty(1, dtype=dtype, device=device) for dtype, device in types]
            changes = any(change(item) is not item for item in examples)
        return convert(module, change, recurse) if changes else module

    kind._apply = converted
    try:
        with torch.set_grad_enabled(gradients), unlogged(), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        kind._apply = convert


def _decided(module: Any, tensors: Sequence[Any], gradients: bool) -> Any:
    """The program as example inputs decide it, with assertions of every decision; None where torch makes none."""
    if find_spec("torch.export._draft_export") is None:  # before torch 2.6
        return None
    draft: Any = import_module("torch.export._draft_export")
    try:
        with _quietly(gradients):
            program = draft.draft_export(module, tuple(tensors))
    except Exception:  # noqa: BLE001 - torch raises many kinds
        return None
    kinds = {failure.failure_type for failure in program._report.failures}
    return program if kinds <= {draft.FailureType.DATA_DEPENDENT_ERROR} else None


@contextlib.contextmanager
def unlogged() -> Generator[None]:
    """Without what torch logs of decisions by values, those that it takes and those that it refuses."""
    rooms = ("export._draft_export", "fx.experimental.symbolic_shapes")
    loggers = [logging.getLogger(f"torch.{room}") for room in rooms]
    were = [item.disabled for item in loggers]
    for item in loggers:
        item.disabled = True
    try:
        yield
    finally:
        for item, disabled in zip(loggers, were, strict=True):
            item.disabled = disabled


def _where(error: Exception) -> str:
    """The line of the model that torch was at, and what to do about it; "" where it was at none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_model(frame.filename)]
    if not frames:
        return ""
    last = frames[-1]
    advice = "write it without Python decisions on values of tensors, or give inputs that avoid it"
    if isinstance(error, (AttributeError, TypeError)):  # no tensor is what it is without tracing: an input was left out
        advice = "the model goes another way while torch traces it: give all its inputs, masks, too"
    return f' at File "{last.filename}", line {last.lineno}, in {last.name}: {last.line}; {advice}'


def _is_of_model(file: str) -> bool:
    """Neither torch's, nor ours, nor Python's."""
    python = file.startswith(sysconfig.get_path("stdlib")) and "-packages" not in file
    ours = (str(Path(torch.__file__).parent), str(Path(__file__).parents[3]))
    return not python and not file.startswith(("<", *ours))


def apart(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Examples as tensors, no two of them one object: torch.export would take such inputs for one."""
    tensors = [torch.as_tensor(item) for item in inputs]
    return tuple(
        item.clone() if any(item is other for other in tensors[:number]) else item
        for number, item in enumerate(tensors)
    )
