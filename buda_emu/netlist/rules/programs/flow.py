"""What the walk of a program notices (buda_emu.netlist.flow): V126, V270-V276, V278, V282-V287, V289, V290, V292."""

from collections.abc import Callable
from typing import Final

from buda_emu.netlist.flow import notes_of
from buda_emu.netlist.model import Program
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import Finding, Findings, program_check
from buda_emu.netlist.rules.rule import rule

rule(
    "V270",
    "X",
    "a variable is used that has no value",
    "A variable has a value once var, staticvar or param declares it, or a varinst writes it. Programs have no "
    "branches and loops run at least once, so the run ends with an error there.",
    "[staticvar: [$rd_ptr], varinst: [$x, set, $rdd_ptr]]",
    "[staticvar: [$rd_ptr], varinst: [$x, set, $rd_ptr]]",
    "NETLIST 3.1",
)
rule(
    "V271",
    "X",
    "an instruction cannot be carried out as it is written",
    "An operand is a number in decimal, true, false or a $variable; set and inc take one operand, add, mul and "
    "incwrap two; incwrap needs a modulus other than 0; the name of a variable starts with $.",
    "- varinst: [$x, incwrap, 1]",
    "- varinst: [$x, incwrap, 1, 4]",
    "NETLIST 3.1, 3.3, 11.2 B7",
)
rule(
    "V272",
    "X",
    "a variable is declared twice",
    "var and param need a name that is not in use, a staticvar one that only staticvar declared. A var inside a"
    " loop is declared again in the second round.",
    "[var: [$x], loop: 2, var: [$y], endloop]",
    "[var: [$x, $y], loop: 2, endloop]",
    "NETLIST 3.2",
)
rule(
    "V273",
    "X",
    "an endloop without a loop",
    "Each endloop ends the innermost loop that is open.",
    "[execute: {graph_name: fwd}, endloop]",
    "[loop: 2, execute: {graph_name: fwd}, endloop]",
    "NETLIST 3.4",
)
rule(
    "V274",
    "X",
    "a loop runs less than once",
    "The count is evaluated where the loop begins, and must be at least 1: there are no loops of no rounds.",
    "- loop: 0",
    "- loop: 1",
    "NETLIST 3.4",
)
rule(
    "V275",
    "X",
    "queue settings that no run accepts",
    "zero needs prologue; a ram with global_wrptr_autoinc has neither prologue, epilogue nor zero; prologue and"
    " epilogue may not be parameters; pointers of a ram lie in its slots, those of a queue are not negative; "
    "graphs that run at the same time give a queue the same settings.",
    "q0: {zero: true, prologue: false, ...}",
    "q0: {zero: true, prologue: true, ...}",
    "NETLIST 3.5, 4.1, 4.3",
)
rule(
    "V276",
    "W",
    "a loop without an endloop",
    "The missing endloop is not an error: the body is run once, whatever the count is.",
    "[loop: 4, execute: {graph_name: fwd}]",
    "[loop: 4, execute: {graph_name: fwd}, endloop]",
    "NETLIST 3.4",
)
rule(
    "V278",
    "W",
    "a variable is written that is not declared",
    "It comes to be, and keeps its value until the program runs again, as a staticvar does. Most likely it is "
    "misspelt.",
    "[staticvar: [$lptr], varinst: [$lprt, set, 1]]",
    "[staticvar: [$lptr], varinst: [$lptr, set, 1]]",
    "NETLIST 3.2",
)
rule(
    "V282",
    "W",
    "a queue is read while it is empty, or beyond its entries",
    "Only the ops of this program fill the queue, and where its entries are counted from the beginning of the "
    "first run, there are not enough of them. Unless the host fills it, too, the run fails or reads what is "
    "old.",
    "[execute: {graph_name: reads_q}, execute: {graph_name: writes_q}]",
    "[execute: {graph_name: writes_q}, execute: {graph_name: reads_q}]",
    "NETLIST 4.1, 4.3",
)
rule(
    "V283",
    "W",
    "a queue between graphs gets full",
    "A graph writes one entry for each of its inputs. The queue is read by ops, so nobody else takes entries "
    "out, and its settings have not popped enough of them by then.",
    "{entries: 2} written by the second of two executes with input_count 2, nothing popped between",
    "{entries: 4}",
    "NETLIST 4.1, 4.3",
)
rule(
    "V284",
    "W",
    "a loop takes more instructions than a run is given",
    "A run ends with an error after 10,000,000 instructions, and inputs of epochs: far beyond any real program.",
    "- loop: 2000000000",
    "- loop: 20",
    "NETLIST 3.4",
)
rule(
    "V285",
    "W",
    "a variable is declared inside a loop",
    "The second round declares it again, which is an error (V272). How often the loop runs is up to a "
    "parameter, or to more than a check goes through.",
    "[param: [$p_n], loop: $p_n, var: [$x], endloop]",
    "[param: [$p_n], var: [$x], loop: $p_n, endloop]",
    "NETLIST 3.2",
)
rule(
    "V286",
    "W",
    "a queue's pointer is wrapped at another place than the queue's",
    "The pointers of a queue run modulo twice its entries, so that full and empty differ. A variable that "
    "rd_ptr_global names and that incwrap wraps elsewhere loses its place there. Rams wrap at their entries.",
    "varinst: [$gptr, incwrap, 1, 4] for a queue of 4 entries",
    "varinst: [$gptr, incwrap, 1, 8] for a queue of 4 entries",
    "NETLIST 4.1, 4.3",
)
rule(
    "V287",
    "W",
    "a varinst moves a ram's pointer beyond its slots",
    "Rams that were executed before follow the variables of their settings at once. The reference refuses a "
    "pointer beyond the last slot even when nothing uses it any more; the device only notes it.",
    "varinst: [$wptr, inc, 1] in a loop of 4 rounds, for a ram of 2 entries",
    "varinst: [$wptr, incwrap, 1, 2]",
    "NETLIST 4.1, 4.3, 12",
)
rule(
    "V289",
    "W",
    "zero for a queue that is not a sum of gradients",
    "zero clears a gradient op's sum at the begin of an execute. Elsewhere it clears the entries that the graph"
    " is about to read.",
    "weights: {prologue: true, zero: true, ...}",
    "weights: {prologue: true, zero: false, ...}",
    "NETLIST 4.1, 4.4",
)
rule(
    "V290",
    "W",
    "the entries of a queue are never popped",
    "An op fills it and an op reads it, but rd_ptr_global stays where it is and global_rdptr_autoinc is 0: when"
    " all entries are written, the next one has no room.",
    "q: {rd_ptr_local: $lptr, rd_ptr_global: $c_zero} in a loop",
    "q: {rd_ptr_local: $lptr, rd_ptr_global: $gptr} with a varinst that moves $gptr",
    "NETLIST 4.1, 4.3",
)
rule(
    "V292",
    "W",
    "a queue that is read by prologue moves on by several entries",
    "With prologue or epilogue all inputs of an execute read the same entry. A pointer that moves on by as many "
    "entries as the graph has inputs is a stream's: all but the first of them are never read.",
    "x: {prologue: true, rd_ptr_local: $lptr, ...} and varinst: [$lptr, incwrap, 64, 256]",
    "x: {prologue: false, rd_ptr_local: $lptr, ...} and varinst: [$lptr, incwrap, 64, 256]",
    "NETLIST 4.4",
)
WALKED: Final = (
    "V126", "V270", "V271", "V272", "V273", "V274", "V275", "V276", "V278",
    "V282", "V283", "V284", "V285", "V286", "V287", "V289", "V290", "V292",
)  # fmt: skip
_FOLLOWS: Final = {"V290": ("V283",)}  # a queue that is never popped, from one that gets full


def _noted(rule: str) -> Callable[[Context, Program], Findings]:
    def noted(ctx: Context, program: Program) -> Findings:
        if not ctx.notes:
            ctx.notes.update(notes_of(ctx.netlist))
        for note in ctx.notes[program.name]:
            if note.rule == rule:
                yield Finding(note.place, note.message, note.hint)

    return noted


for _rule in WALKED:
    program_check(_rule, unless=_FOLLOWS.get(_rule, ()))(_noted(_rule))
