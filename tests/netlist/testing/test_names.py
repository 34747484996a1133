"""Names in the test sections that the netlist does not have."""

from collections import Counter
from random import Random

import pytest

from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.fixes import apply_fixes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.program.parameters import parameter_names
from buda_emu.netlist.test_names import section_doubts
from buda_emu.spec.test_config import key_of_parameter
from netlist.netlist_texts import NETLIST
from netlist.rules import bases
from netlist.rules.cases import underlined

STIMULUS = "{type: Constant, constant_value: 1.0}"


def findings(section, text=NETLIST, *, strict=False, rule="V216"):
    result = check_text(text + section, "net.yaml", "wormhole_b0", strict=strict)
    return [item for item in result.diagnostics if item.rule == rule]


def overrides(key, config="stimulus-config", entry=STIMULUS):
    return f"test-config:\n  {config}:\n    {entry[1:-1].split(',')[0]}\n    overrides:\n      {key}: {entry}\n"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("config", ["stimulus-config", "comparison-config"])
def test_an_override_of_no_queue_is_a_warning_with_the_name_that_was_meant(config, strict):
    entry = STIMULUS if config == "stimulus-config" else "{type: Exact}"
    (finding,) = findings(overrides("srcc", config, entry), strict=strict)
    assert finding.severity == "warning"
    assert finding.message == f"{config}: override 'srcc' matches the name of no queue: it is never used"
    assert finding.hint == "did you mean 'src'?"
    assert underlined(finding) == "srcc"


@pytest.mark.parametrize("key", ["src", "'s.*'", "'.*rc'", "default", "'src|other'"])
def test_an_override_of_some_queue_is_fine(key):
    assert findings(overrides(key)) == []


def test_a_pattern_has_to_match_a_whole_name():
    (finding,) = findings(overrides("'s[rs]'"))
    assert finding.hint == "a pattern has to match all of a name: did you mean '.*s[rs].*'?"
    text = NETLIST + overrides("'s[rs]'")
    fixed = apply_fixes(text, lambda text: check_text(text, "net.yaml", "wormhole_b0").diagnostics, unsafe=True)
    assert '".*s[rs].*": {type' in fixed.text


def test_copies_on_several_chips_have_two_names():
    assert "target_device: [0, 1]" in bases.COPIES
    names = {queue.name for queue in check_text(bases.COPIES, arch="wormhole_b0").netlist.queues.values()}
    copy = next(name for name in sorted(names) if "." in name)
    for name in (copy, copy.partition(".")[0]):
        assert findings(overrides(name), bases.COPIES) == []
    assert len(findings(overrides(f"{copy}7"), bases.COPIES)) == 1


def test_queues_of_io_config():
    (finding,) = findings("test-config: {io-config: {inputs: [src, scr], outputs: [dst]}}\n")
    assert (underlined(finding), finding.hint) == ("scr", "did you mean 'src'?")


CHECK = (
    "performance-check: {c: {graph-name: fwd, program-name: run, target-ops: [copy], "
    "tensors-per-second: {expected: 1}}}\n"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fwd", "fw", "c: there is no graph 'fw': nothing is checked"),
        ("name: run", "name: rum", "c: there is no program 'rum': nothing is checked"),
        ("[copy]", "[cpy]", "c: target-ops names no op 'cpy': nothing is checked of it"),
    ],
)
def test_names_of_a_performance_check(old, new, message):
    assert findings(CHECK) == []
    assert findings(CHECK.replace("[copy]", "[opy]")) == []  # the end of a label is enough
    (finding,) = findings(CHECK.replace(old, new))
    assert finding.message == message
    assert finding.hint == f"did you mean '{old.rpartition(' ')[2].strip('[]')}'?"


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 100))])
def test_any_other_name_is_reported_and_no_name_of_a_queue(seed):
    random = Random(seed)
    names = ["src", "dst"]
    word = "".join(random.choice("scrdt_1") for _ in range(random.randrange(1, 7)))
    for name in (*names, word):
        assert bool(findings(overrides(name))) == (name not in names), name


MISSPELT = {
    "test-config: {comparision-config: {type: Exact}}\n": ("comparision-config", "comparison-config"),
    "test-config: {stimulus_config: {type: Sparse}}\n": ("stimulus_config", "stimulus-config"),
    "test-config: {tst-args: {n: 2}}\n": ("tst-args", "test-args"),
    "test-config: {io-config: {output: [dst]}}\n": ("output", "outputs"),
    "test_config: {comparison-config: {type: Exact}}\n": ("test_config", "test-config"),
    "performance-chek: {}\n": ("performance-chek", "performance-check"),
    "buda_emu: {undefined: nan}\n": ("buda_emu", "buda-emu"),
    "fused_op: {}\n": ("fused_op", "fused_ops"),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("section", "words"), MISSPELT.items())
def test_a_key_that_looks_like_a_misspelt_section_is_a_warning(section, words, strict):
    (finding,) = findings(section, strict=strict, rule="V218")
    key, meant = words
    assert (finding.severity, underlined(finding)) == ("warning", key)
    assert finding.hint == f"did you mean '{meant}'?"
    text = NETLIST + section
    fixed = apply_fixes(text, lambda text: check_text(text, "net.yaml", "wormhole_b0").diagnostics, unsafe=True)
    assert fixed.text == NETLIST + section.replace(f"{key}:", f"{meant}:")


@pytest.mark.parametrize(
    "section",
    [
        "notes: 1\n",
        "test-config: {test-generation-debug: {seed: 1}}\n",
        "x-common: &x {}\n",
        "test-config: []\n",
        "x-queues: {}\n",
        "test-config: {}\ntest: 1\n",
        "test-config: {test-args: {}, test-tags: {}}\n",
    ],
)
def test_keys_that_are_like_no_section_are_notes(section):
    assert findings(section, rule="V218") == []


PARAMETERS = NETLIST.replace("param: [$p_count]", "param: [$p_count, $p_loop_count, $p_inner_increment]")
UNREAD = {
    "p_count: 2": "$p_count takes the value of 'count'",
    "$p_count: 2": "$p_count takes the value of 'count'",
    "cuont: 2": "did you mean 'count'?",
    "p_loop_count: 2": "$p_loop_count takes the value of 'microbatch_count'",
    "loop_count: 2": "$p_loop_count takes the value of 'microbatch_count'",
    "p_inner_increment: 2": "$p_inner_increment takes the value of 'inner_increment'",
    "microbatch_cont: 2": "did you mean 'microbatch_count'?",
    "notes: 2": "",
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("entry", "hint"), UNREAD.items())
def test_a_test_arg_that_nothing_reads_is_a_warning_with_the_key_that_was_meant(entry, hint, strict):
    section = f"test-config: {{test-args: {{{entry}}}}}\n"
    (finding,) = findings(section, PARAMETERS, strict=strict, rule="V220")
    key = entry.partition(":")[0]
    assert (finding.severity, underlined(finding), finding.hint) == ("warning", key, hint)
    (doubt,) = section_doubts([finding])
    assert key in doubt
    assert hint in doubt
    assert not doubt.endswith("()")


def test_a_key_that_is_there_already_is_not_offered_for_a_test_arg():
    section = "test-config: {test-args: {p_loop_count: 2, microbatch_count: 3}}\n"
    (finding,) = findings(section, PARAMETERS, rule="V220")
    assert (finding.hint, finding.fix) == ("$p_loop_count takes the value of 'microbatch_count'", None)


def test_what_a_parameter_follows_is_what_it_gets():
    programs = list(check_text(PARAMETERS, "net.yaml", "wormhole_b0").netlist.programs.values())
    names = parameter_names(programs)
    args = {key_of_parameter(name): str(number) for number, name in enumerate(names, 2)}
    assert list(default_parameters(programs, args).values()) == list(args.values())
    assert (
        findings(f"test-config: {{test-args: {{{', '.join(f'{key}: 1' for key in args)}}}}}\n", PARAMETERS, rule="V220")
        == []
    )


@pytest.mark.parametrize("key", ["minibatch_count", "program_loop_count", "sequence_lenth", "head_size", "zero_grad"])
def test_test_args_that_the_tests_of_the_vendor_read_are_fine(key):
    assert findings(f"test-config: {{test-args: {{{key}: 1}}}}\n", rule="V220") == []


@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ("graph-name", "graph_name", "graph-name"),
        ("target-ops", "targt-ops", "target-ops"),
        ("tensors-per-second", "tensor-per-second", "tensors-per-second"),
        ("expected: 1", "expected: 1, rtoll: 0.1", "rtol"),
    ],
)
def test_misspelt_keys_of_a_performance_check(old, new, meant):
    assert findings(CHECK, rule="V207") == []
    (finding,) = findings(CHECK.replace(old, new), rule="V207")
    assert finding.hint == f"did you mean '{meant}'?"


def test_no_fix_makes_the_contrary_of_a_bound():
    (finding,) = findings(CHECK.replace("expected: 1", "expected: 1, max_bound: 3"), rule="V207")
    assert finding.hint == "give expected and rtol"
    assert finding.fix is None


# What tests of public netlists name in vain: a misspelt queue, and some that are gone.
PUBLIC = {
    "netlist_dram_single.yaml": 1,
    "netlist_int32_requant_t_bcast.yaml": 1,
    "netlist_matmul_ident.yaml": 2,
    "netlist_unary_host_queues_1gb_device01.yaml": 6,
}


def test_public_netlists_name_what_they_have_but_for_a_few(corpus):
    counts = Counter()
    for path in sorted((corpus / "netlists").rglob("*.yaml")):
        text = path.read_text()
        if "test-config" in text or "performance-check" in text:
            result = check_text(text, path.name)
            rules = [item.rule for item in result.diagnostics]
            counts[path.name] += rules.count("V216")
            assert not {"V207", "V218", "V220"} & set(rules), path
    assert +counts == PUBLIC
