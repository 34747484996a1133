"""Programs of netlists, spoilt and made up: check and run end as documented, and say the same of a program.

Where a run fails for what the checker claims to see, the checker has found it, and a program of which the checker says
that it is bound to fail does fail. 250 programs always, 10,000 with --slow; what was found is kept by its number.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

import buda_emu as be
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import EndLoop, Execute, Loop, Netlist, Param, Program
from buda_emu.netlist.rules import RULES
from buda_emu.netlist.test_config import read_test_config
from buda_emu.performance.timing.model import epochs
from buda_emu.support.errors import BudaError, InternalError, ProgramError
from netlist_programs import text

FAILING = {rule.id for rule in RULES.values() if rule.stage == "X"}
MEMORY_LIMIT = 64 << 20
STEP_LIMIT = 2_000
# What a run says of a program, and the rules that tell it before. Where `certain` the values decide, which a parameter
# of the caller hides.
CLAIMED = (
    ("unknown variable", {"V270"}, False),
    ("endloop without a loop", {"V273"}, False),
    ("a variable's name starts with \\$", {"V271"}, False),
    ("takes \\d+ operands?", {"V271"}, False),
    ("is not a \\$variable|neither a number|empty operand|does not fit a 32-bit", {"V271"}, False),
    ("a loop runs at least once", {"V274"}, True),
    ("incwrap ", {"V271"}, True),
    ("the name is already in use", {"V272", "V285"}, True),
    ("may not be the parameter|settings of queue .* differ", {"V275"}, False),
    ("zero without prologue|global_wrptr_autoinc together", {"V275"}, True),
    (" is -\\d+ for queue", {"V275"}, True),
    ("_ptr_global -?\\d+ outside ram", {"V275", "V287"}, True),
    ("twice before the other graphs", {"V126"}, True),
)
BY_POINTERS = (" is -\\d+ for queue", "_ptr_global -?\\d+ outside ram")  # of a machine's queues and rams
SURE = "reads queue .* which is empty|pops .* which holds|entries free"
SEEDS = (17741, 522, 733, 748, 781, 809, 965)
"""Numbers of programs that were once judged wrongly."""


def failure(netlist: Netlist, program: Program) -> str:
    """What a first run of a program on a new machine ends with; "" when it ends well. Only documented errors."""
    try:
        parameters = default_parameters([program], {})
        with be.Emulator(netlist, threads=1, memory_limit=MEMORY_LIMIT, step_limit=STEP_LIMIT) as emulator:
            config = read_test_config("net.yaml", netlist.sections)
            for block in default_inputs(netlist, config, [program], parameters, seed=0):
                emulator.push(block.queue, block.array, block.slot)
            emulator.run(program.name, parameters)
            emulator.outputs()
    except InternalError:
        raise
    except ProgramError as error:
        return str(error).partition("\n")[0]
    except BudaError as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""


def judged(number: int, others: tuple[str, ...] = ()) -> Counter[str]:
    """Check and run the netlist of a number; how it ended. Raises AssertionError where the two do not agree."""
    endings: Counter[str] = Counter()
    source = text(number, others)
    found = check_text(source, "net.yaml")
    strict = check_text(source, "net.yaml", strict=True)
    netlist = found.netlist
    if netlist is None:
        assert not strict.ok
        return Counter(refused=1)
    for program in netlist.programs.values():
        own = {item.rule for item in found.diagnostics if item.message.startswith(f"program {program.name}:")}
        told = [item.message for item in found.diagnostics if item.message.startswith(f"program {program.name}:")]
        said = failure(netlist, program)
        endings["failed" if said else "ended"] += 1
        open_loops = sum(isinstance(one, Loop) - isinstance(one, EndLoop) for one in program.instructions)
        assert open_loops <= 0 or "V276" in own, (number, program.name, "a loop without an endloop")
        assert "V280" in own or not _rams_without_settings(netlist, program), (number, program.name)
        bound = own & FAILING
        if bound:
            assert not strict.ok, (number, bound)
            assert said, (number, program.name, bound)
            endings["told before"] += 1
            endings.update(bound)
        certain = not any(isinstance(one, Param) for one in program.instructions)
        for words, rules, by_value in CLAIMED:
            if re.search(words, said) and (certain or not by_value):
                assert own & rules, (number, program.name, said, own)
                endings["claimed"] += 1
        endings["timed"] += _timed(netlist, program, said)
        endings["queues"] += _judged_queue(netlist, number, said, told, certain=certain)
    return endings


def _rams_without_settings(netlist: Netlist, program: Program) -> set[str]:
    """Rams that executed graphs read and no execute of the program names."""
    executes = [step for step in program.instructions if isinstance(step, Execute)]
    named = {settings.queue for step in executes for settings in step.queue_settings}
    graphs = [netlist.graphs[step.graph] for step in executes if step.graph in netlist.graphs]
    read = {name for graph in graphs for op in graph.ops for name in op.inputs}
    return {name for name, queue in netlist.queues.items() if queue.is_ram and name in read - named}


def _timed(netlist: Netlist, program: Program, said: str) -> bool:
    """`perf` refuses what `run` refuses before any data are looked at, in its words. Was it refused?"""
    if "step_limit" in said:
        return False
    refused = ""
    try:
        epochs(netlist, [program], default_parameters([program], {}))
    except ProgramError as error:
        refused = str(error).partition("\n")[0]
    assert said or not refused, (program.name, refused)
    before_data = any(re.search(words, said) for words, _, _ in CLAIMED if words not in BY_POINTERS)
    assert refused == said or not before_data, (program.name, said, refused)
    return bool(refused)


def _judged_queue(netlist: Netlist, number: int, said: str, told: list[str], *, certain: bool) -> bool:
    """Queues that only ops fill: too few entries, or too many. Was there one?"""
    sure = [words for words in told if re.search(SURE, words)]
    assert said or not sure, (number, sure)
    match = re.search(
        r"(read from an empty queue:|never written:|push to a full queue:|pop of \d+ from) queue (\S+)", said
    )
    queue = netlist.queues.get(match.group(2)) if match is not None else None
    if match is None or queue is None or queue.host_fed or not certain:
        return False
    if "full" in match.group(1) and not any(queue.name in op.inputs for op in netlist.ops.values()):
        return False  # the host takes entries out meanwhile
    named = [words for words in told if re.search(rf"queue {re.escape(queue.name)}\b", words)]
    assert named, (number, said, told)
    return True


@pytest.mark.parametrize("number", SEEDS)
def test_what_was_judged_wrongly_once(number: int) -> None:
    judged(number)


def test_spoilt_programs_are_judged_as_they_run() -> None:
    endings = sum((judged(number) for number in range(250)), Counter[str]())
    assert endings["timed"] > 20
    assert endings["queues"] > 3
    assert min(endings["ended"], endings["failed"], endings["claimed"], endings["told before"]) > 20, endings


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 20_000, 1_000))
def test_ten_thousand_spoilt_programs_are_judged_as_they_run(corpus: Path, first: int) -> None:
    others = tuple(path.read_text(encoding="utf-8") for path in sorted((corpus / "mutants").glob("*_valid_*.yaml")))
    endings = sum((judged(number, others) for number in range(first, first + 1_000)), Counter[str]())
    assert min(endings["ended"], endings["failed"], endings["claimed"], endings["told before"]) > 100, endings
