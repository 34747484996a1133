"""Random programs of netlists: those of valid netlists with instructions, operands, loops and settings spoilt, and new
ones over the same graphs. One number gives one text.
"""

import copy
import json
import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from buda_emu.netlist.fields import SETTING_FIELDS
from netlist.rules import bases

HERE = Path(__file__).parents[1]
OWN = [path.read_text(encoding="utf-8") for path in sorted((HERE.parent / "netlists").glob("*.yaml"))]
SMALL = (
    bases.COPY, bases.ADD, bases.IN_TURN, bases.IN_TURN, bases.IN_TURN, bases.TWO_CHIPS, bases.GRADIENT, bases.MATMUL,
)  # fmt: skip
NAMES = ("$lp", "$gp", "$z", "$c_one", "$p_n", "$i", "$j", "$lpp", "$q_rdptr", "x")
NUMBERS = ("0", "1", "2", "3", "4", "8", "-1", "7", "100", "2000000000", "4294967296", "true", "four", "", "1.5")
OPCODES = ("set", "add", "mul", "inc", "incwrap")
FLAGS = ("true", "false", "$z", "$i", "1", "0")
Instruction = dict[str, Any] | str


def text(number: int, others: Sequence[str] = ()) -> str:
    """The netlist of a number: a base, own or of `others`, with its programs changed."""
    draw = random.Random(number)
    documents = [*SMALL * 3, *others]
    if draw.random() < 0.05:
        documents = OWN
    before, programs, after = _parted(draw.choice(documents))
    programs = copy.deepcopy(programs)
    for program in programs:
        for name in program:
            body: list[Instruction] = program[name] or []
            executes = [step for step in body if isinstance(step, dict) and "execute" in step]
            if draw.random() < 0.5:
                body = _generated(draw, executes)
            for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3))):
                body = _mutated(draw, body, executes)
            program[name] = body
    lines = "\n".join(f"  - {_written(program)}" for program in programs)
    return f"{before}programs:\n{lines}\n{after}"


@cache
def _parted(document: str) -> tuple[str, list[dict[str, Any]], str]:
    """What stands before the programs, these, and what stands after; all words stay words."""
    start = re.search(r"^programs:", document, re.MULTILINE)
    assert start is not None
    end = re.search(r"^\S", document[start.end() :], re.MULTILINE)
    stop = start.end() + end.start() if end is not None else len(document)
    programs = yaml.load(document[start.start() : stop], yaml.BaseLoader)["programs"]
    return document[: start.start()], programs, document[stop:]


def _written(value: Any) -> str:
    """As YAML, an instruction on a line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(key)}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return value if re.fullmatch(r"[\w$.+-]+", value) else json.dumps(value)


def _generated(draw: random.Random, executes: Sequence[Instruction]) -> list[Instruction]:
    """Declarations, loops around executes, counters: mostly sound."""
    names = ["$lp", "$gp", "$z", "$c_one", "$i"]
    body: list[Instruction] = [{"param": ["$p_n"]}] if draw.random() < 0.3 else []
    body.append({"staticvar": dict.fromkeys(names[:2], "0")})
    body.append({"var": {"$z": "0", "$c_one": "1", "$i": draw.choice(("0", "1", "2"))}})
    open_loops = 0
    for _ in range(draw.randint(1, 7)):
        kind = draw.random()
        if kind < 0.25 and open_loops < 3:
            body.append({"loop": draw.choice(("1", "2", "3", "5", "$c_one", "$i", "$p_n"))})
            open_loops += 1
        elif kind < 0.7 and executes:
            body.append(copy.deepcopy(draw.choice(executes)))
        elif kind < 0.85:
            body.append({"varinst": [draw.choice(names[:2]), "incwrap", draw.choice(("1", "2", "$c_one")), "4"]})
        elif open_loops:
            body.append("endloop")
            open_loops -= 1
    return body + ["endloop"] * open_loops


def _mutated(draw: random.Random, body: list[Instruction], executes: Sequence[Instruction]) -> list[Instruction]:
    body = copy.deepcopy(body)
    kind = draw.choice(("drop", "double", "move", "insert", "settings", "settings", "word", "word"))
    if kind == "insert" or not body:
        body.insert(draw.randint(0, len(body)), _instruction(draw, executes))
        return body
    index = draw.randrange(len(body))
    if kind == "drop":
        del body[index]
    elif kind == "double":
        body.insert(draw.randint(0, len(body)), copy.deepcopy(body[index]))
    elif kind == "move":
        body.insert(draw.randrange(len(body)), body.pop(index))
    else:
        chosen = [step for step in body if isinstance(step, dict) and ("execute" in step) == (kind == "settings")]
        if chosen:
            step = draw.choice(chosen)
            _respell(draw, step) if kind == "word" else _other_settings(draw, step["execute"])
    return body


def _instruction(draw: random.Random, executes: Sequence[Instruction]) -> Instruction:
    name, number = draw.choice(NAMES), draw.choice(NUMBERS)
    choices: list[Instruction] = [
        {"loop": draw.choice((number, name))},
        "endloop",
        {"varinst": [name, draw.choice(OPCODES), *draw.choices((*NAMES, *NUMBERS), k=draw.randint(0, 3))]},
        {"varinst": [name, "incwrap", draw.choice(("1", "2", "-1", "$c_one")), draw.choice(("2", "4", "8", "0"))]},
        {"varinst": [name, "set", number]},
        {"var": [name]},
        {"staticvar": {name: draw.choice(NUMBERS[:8])}},
        {"param": [name]},
        *(copy.deepcopy(list(executes)) if draw.random() < 0.7 else []),
    ]
    return draw.choice(choices)


def _respell(draw: random.Random, step: dict[str, Any]) -> None:
    """Another word for an operand, or a name in place of another."""
    for word, operand in step.items():
        if isinstance(operand, list) and operand:
            operand[draw.randrange(len(operand))] = draw.choice((*NAMES, *NUMBERS, *OPCODES))
        elif isinstance(operand, dict) and operand:
            name = draw.choice(sorted(operand))
            value = operand.pop(name)
            operand[draw.choice((name, draw.choice(NAMES)))] = draw.choice((value, draw.choice(NUMBERS[:8])))
        else:
            step[word] = draw.choice((*NAMES, *NUMBERS))


def _other_settings(draw: random.Random, execute: dict[str, Any]) -> None:
    """One setting changed, dropped or new; or those of one queue dropped."""
    settings = execute.get("queue_settings") or {}
    if not isinstance(settings, dict) or not settings:
        return
    queue = draw.choice(sorted(settings))
    fields = settings[queue]
    if draw.random() < 0.15:
        del settings[queue]
        return
    field = draw.choice((*sorted(fields), *SETTING_FIELDS)) if draw.random() < 0.5 else draw.choice(sorted(fields))
    pointer = "ptr" in field
    fields[field] = draw.choice((*NAMES, *NUMBERS[:8], *NUMBERS[:8], *NUMBERS) if pointer else FLAGS)
