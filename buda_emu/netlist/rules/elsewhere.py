"""Rules that are checked outside this package of checks: by the reader of documents and of the `test-config`
section."""

from buda_emu.netlist.fields import OWN_SECTION, OWN_WORDS, UNDEFINED
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.nodes import Mapping, Scalar
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.registry import Finding, Findings, netlist_check, rule
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote

rule(
    "V000",
    "P",
    "the document cannot be read as YAML",
    "Nothing can be said about a text that is not a YAML map: an unclosed bracket, a tab as indentation, an "
    "empty file, an unrendered template.",
    "queues: {q0: {type: queue",
    "queues: {q0: {type: queue}}",
    "NETLIST 1.1",
)
rule(
    "V001",
    "P",
    "`devices` has a key other than `arch`",
    "The section says for which architectures the netlist is written, and nothing else. Chips and their links"
    " are described outside of the netlist.",
    "devices: {arch: wormhole_b0, count: 2}",
    "devices: {arch: wormhole_b0}",
    "NETLIST 1.2",
)
rule(
    "V002",
    "P",
    "the architecture is missing, unknown or not selectable",
    "Sizes, formats and ops are judged for one architecture. A list offers several, one of them is selected; "
    "every word of the list must be known, and the selected one must be listed. Case does not matter.",
    "devices: {arch: wormhole_b}",
    "devices: {arch: [grayskull, wormhole_b0]}",
    "NETLIST 1.2, 11.3 C4",
)
rule(
    "V011",
    "P",
    "the file has no queues, no graphs or no programs",
    "A netlist needs all three: data to read, ops that use it, and a program that executes them. Other "
    "sections are free.",
    "queues: {}",
    "queues: {q0: {...}}",
    "NETLIST 1.1",
)
rule(
    "V180",
    "P",
    "not an integer",
    "Integers are decimal, hexadecimal with 0x or octal with a leading 0, and fit 32 bits with sign "
    "(addresses without). Quotes and a plus sign do not matter.",
    "entries: 2.0",
    "entries: 2",
    "NETLIST 1.1, 11.3 C12",
)
rule(
    "V181",
    "P",
    "not a boolean",
    "Booleans are true, false, yes, no, on, off, y and n: lower case, Capitalised or UPPER CASE.",
    "untilize_output: 0",
    "untilize_output: false",
    "NETLIST 1.1, 11.3 C12",
)
rule(
    "V182",
    "P",
    "not a number",
    "Fractions are decimal, with an exponent if wanted; .inf and .nan are numbers.",
    "relu_threshold: 0x10",
    "relu_threshold: 1.0e-3",
    "NETLIST 11.3 C12",
)
rule(
    "V183",
    "P",
    "not a list",
    "The field takes a list, even of one entry.",
    "inputs: q0",
    "inputs: [q0]",
    "NETLIST 1.3, 1.4",
)
rule(
    "V184",
    "P",
    "not a map",
    "The field takes a map of names to values.",
    "input_0_pad: 2",
    "input_0_pad: {rt: 2, ct: 0, pad_value: 0.0}",
    "NETLIST 1.3, 1.4",
)


@netlist_check(
    rule(
        "V213",
        "P",
        "section `buda-emu` says something that does not exist",
        "The section speaks to the emulator alone: `undefined: nan` makes elements NaN on which the reference aborts, "
        "as roots of negative numbers, and `undefined: stop`, the default, stops the run there. `effort: low` says "
        "that a compiler took the first legal placement, `board: n150` that it placed for the "
        "chips of that board. A word that nobody reads would be ignored silently.",
        "buda-emu: {undefined: nil}",
        "buda-emu: {undefined: nan}",
        "NETLIST 1.1",
    )
)
def own_section(_: Context, netlist: Netlist) -> Findings:
    """Report keys and words of the section `buda-emu` that do not exist."""
    section = netlist.sections.get(OWN_SECTION)
    if section is None or (isinstance(section, Scalar) and section.is_null):
        return
    if not isinstance(section, Mapping):
        yield Finding(section.mark, f"section {OWN_SECTION} is no map", f"write {OWN_SECTION}: {{{UNDEFINED}: nan}}")
        return
    for name, key, value in section.items():
        word = value.text if isinstance(value, Scalar) else ""
        if name not in OWN_WORDS:
            message = f"key {quote(name)} of section {OWN_SECTION} is not one of: {', '.join(OWN_WORDS)}"
            yield Finding(key.mark, message, near(name, list(OWN_WORDS)))
        elif word not in OWN_WORDS[name]:
            message = f"{name} {quote(word)} is not one of: {', '.join(OWN_WORDS[name])}"
            yield Finding(value.mark, message, near(word, OWN_WORDS[name]))


rule(
    "V200",
    "T",
    "unknown field in stimulus-config or comparison-config",
    "The harness knows a fixed list of fields and stops at any other, so that a misspelt tolerance is not lost.",
    "comparison-config: {type: AllClose, check_tile_col_range: [1, 8]}",
    "comparison-config: {type: AllClose, check_tile_cols_range: [1, 8]}",
    "NETLIST 5.1, 5.3",
)
rule(
    "V201",
    "T",
    "a value in `test-config` is of the wrong kind",
    "Bounds and tolerances are numbers, counts integers, ranges pairs of rows or columns from 1 to 32.",
    "stimulus-config: {type: Uniform, set_tile_rows: [0, 31]}",
    "stimulus-config: {type: Uniform, set_tile_rows: [1, 32]}",
    "NETLIST 5.1, 5.3",
)
rule(
    "V202",
    "T",
    "`overrides` is empty",
    "The key says that there are overrides; the harness stops if there are none.",
    "stimulus-config: {type: Constant, constant_value: 1.0, overrides: }",
    "stimulus-config: {type: Constant, constant_value: 1.0}",
    "NETLIST 5",
)
rule(
    "V203",
    "T",
    "the key of an override is not a usable pattern",
    "Keys are names of queues or regular expressions that match a whole name. They are matched by backtracking, so "
    "a group that repeats and holds a repetition could take for ever: it is refused.",
    "overrides: {'.*[weight': {type: Constant, constant_value: 1.0}}",
    "overrides: {'.*weight': {type: Constant, constant_value: 1.0}}",
    "NETLIST 5",
)
rule(
    "V204",
    "T",
    "a stimulus or comparison that cannot be used",
    "An unknown type, a missing bound, a negative tolerance or a check_pcc beyond 1 stops a test when the entry is "
    "used. An override takes nothing from the entry above it: it needs its own type and bounds.",
    "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0}",
    "stimulus-config: {type: Uniform, uniform_lower_bound: -1.0, uniform_upper_bound: 1.0}",
    "NETLIST 5, 5.1, 5.3",
)
rule(
    "V205",
    "T",
    "a value in `performance-check` is of the wrong kind",
    "Expected figures, tolerances and bounds are numbers, target inputs integers, target ops and cores lists.",
    "cycles-per-tensor: {expected: 35500 cycles, rtol: 0.1}",
    "cycles-per-tensor: {expected: 35500, rtol: 0.1}",
    "NETLIST 6",
)
rule(
    "V206",
    "T",
    "a metric of `performance-check` that cannot be checked",
    "A metric is compared with `expected` within `rtol`, or with `min_bound`; the backend stops if both are given.",
    "tensors-per-second: {expected: 1500, min_bound: 1400}",
    "tensors-per-second: {min_bound: 1400}",
    "NETLIST 6",
)
rule(
    "V207",
    "W",
    "a key of `performance-check` that looks misspelt",
    "Unknown keys are ignored, so a misspelt metric is never checked, and with a misspelt graph-name nothing is.",
    "cycle-per-tensor: {expected: 35500}",
    "cycles-per-tensor: {expected: 35500}",
    "NETLIST 6",
)
rule(
    "V216",
    "W",
    "a test section names something that the netlist does not have",
    "An override of `test-config` counts for the queues whose whole name is its key or matches it as a pattern; where "
    "there is none, the queue that was meant gets the stimulus or comparison of all others. io-config lists queues, "
    "and `performance-check` names a graph, a program and ops: nothing is checked where one is misspelt.",
    "overrides: {averge: {type: Constant, constant_value: 0.1}} beside queue average",
    "overrides: {average: {type: Constant, constant_value: 0.1}}",
    "NETLIST 5, 6",
)
rule(
    "V220",
    "W",
    "a key of test-args that nothing reads",
    "A parameter of a program follows one key of `test-args`: $p_loop_count and $p_microbatch_count follow "
    "`microbatch_count`, others the key of their name without $ and p_. The vendor's tests read some more keys. Any "
    "other is ignored, and the parameter that was meant keeps its default: a loop then runs once.",
    "test-args: {p_loop_count: 4}",
    "test-args: {microbatch_count: 4}",
    "NETLIST 3.7, 5",
)
rule(
    "V218",
    "W",
    "a key that looks like a misspelt section",
    "Sections that nobody knows are ignored, and so are the keys of `test-config` beside its four. Under a misspelt "
    "name a comparison, a stimulus or all of `performance-check` is lost without a word. Names that are like none of "
    "those that are read are taken for notes.",
    "test-config: {comparision-config: {type: Exact}}",
    "test-config: {comparison-config: {type: Exact}}",
    "NETLIST 1.1, 5",
)
