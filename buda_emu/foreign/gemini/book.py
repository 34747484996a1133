"""The book of rules of a schedule, and those that reading it enforces (facts GEMINI 4)."""

from typing import Final

from buda_emu.support.checker import RuleBook

BOOK: Final = RuleBook(kind="gemini schedule", prefix="G")

BOOK.declare(
    "G001", "error", "the object is not a schedule: top-level keys are missing, unknown, or of the wrong type",
    why="A schedule is an object with a key '-1' for DRAM, a decimal key for each core, xlen and ylen; with buffersize "
    "it is of dialect A, without it of dialect B. Nothing else is checked while this is wrong.",
    source="GEMINI 2, 3",
)  # fmt: skip
BOOK.declare(
    "G002", "error", "a key is missing, of the wrong type, or not one of its words",
    why="Keys that the format does not know are ignored; those that it knows are required, except for a few "
    "that may be absent. Booleans are not numbers. Later rules are not checked while this is wrong.",
    source="GEMINI 2, 3",
)  # fmt: skip
BOOK.declare(
    "G003", "error", "a box is not four integers with 0 <= lower <= upper",
    why="Boxes are inclusive ranges N C H W; a workload is a list of both corners.",
    wrong='"lower": [0, 8, 0, 0], "upper": [0, 7, 3, 3]', right='"lower": [0, 0, 0, 0], "upper": [0, 7, 3, 3]',
    source="GEMINI 2",
)  # fmt: skip
