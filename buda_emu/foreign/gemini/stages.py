"""The stages of the Gemini tool chain, recognised by their content.

A model's quantisation scales and its network (front-end IR) go into the scheduler, the schedule into the assembler, and
its instructions into the reference platform, which writes a trace. A verb that is given the file of another stage says
in one sentence what the file is and where it belongs.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from buda_emu.foreign.gemini.json_values import as_object


class Stage(NamedTuple):
    """A file format of one stage of the tool chain, and advice on what to do with such a file here."""

    words: str
    advice: str

    def instead_of(self, expected: "Stage") -> str:
        """Return the sentence for a file of this stage that was given where another is needed."""
        return f"this is {self.words}, not {expected.words}: {self.advice}"


SCALES: Final = Stage(
    "a table of quantisation scales",
    "the front end reads it together with a model; give the schedule that was made from them",
)
NETWORK: Final = Stage(
    "a network (front-end IR)",
    "give the schedule that a scheduler made from it, and this file as `--frontend`",
)
SCHEDULE: Final = Stage("a schedule", "give it as the schedule, and its network as `--frontend`")
ASSEMBLER: Final = Stage(
    "an assembler file", "give the schedule that it was made from, and this file to `gemini run` as `--asm`"
)
TRACE: Final = Stage(
    "a reference trace", "give the schedule that it belongs to, and this file to `gemini run` as `--trace`"
)

_SCHEDULE_KEYS: Final = frozenset({"-1", "xlen", "ylen", "buffersize", "top_batch_cut"})
_SCALE_KEYS: Final = frozenset({"input_dtype", "output_dtype", "input_scale", "output_scale", "weight_scale"})
_FIRST_ENTRY: Final = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{')
_OPERATION: Final = re.compile(rb'"operation"\s*:\s*"')
_LAYER_KEY: Final = re.compile(rb'"(?:previous_layer|next_layer|layer_index|(?:input|output)_(?:shape|dtype))"\s*:')
_SCALE_KEY: Final = re.compile(rb'"(?:(?:input|output)_(?:scale|zero_point|dtype)|weight_(?:scale|dtype))"\s*:')
_INSTRUCTION: Final = re.compile(rb"\s*\[\w+, \{'\w+':")
_TIMES: Final = re.compile(rb"[^\n]*'inst_idx'")


def recognise_content(content: Any) -> Stage | None:
    """Return the stage whose file has this decoded JSON content; None if it is that of none."""
    top = as_object(content)
    if not top:
        return None
    if _SCHEDULE_KEYS & top.keys() or any(str(key).isdecimal() for key in top):
        return SCHEDULE
    entries = [entry for entry in map(as_object, top.values()) if entry is not None]
    if any(_is_layer(entry) for entry in entries):
        return NETWORK
    if any(_SCALE_KEYS & entry.keys() for entry in entries):
        return SCALES
    return None


def _is_layer(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a file's top object is a layer of a network, that is, names its operation."""
    return isinstance(entry.get("operation"), str)


def recognise_beginning(head: bytes) -> Stage | None:
    """Return the stage, other than a schedule's, of a file that begins with these bytes; None if it is of none."""
    if _INSTRUCTION.match(head) is not None:
        if _TIMES.match(head) is not None:
            return TRACE
        return ASSEMBLER
    if _FIRST_ENTRY.match(head) is None:
        return None
    if _OPERATION.search(head) is not None and _LAYER_KEY.search(head) is not None:
        return NETWORK
    if _SCALE_KEY.search(head) is not None:
        return SCALES
    return None
