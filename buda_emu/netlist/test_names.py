"""Names in the sections beside the netlist: those of `test-config` and `performance-check` that the netlist does not
have (V216), keys that are nearly those of a section (V218), and test-args that nothing reads (V220). What stands under
such a name is never used, and nothing else says so."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from buda_emu.netlist import nodes
from buda_emu.netlist.fields import OWN_SECTION, SECTIONS
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import DEFAULT, SectionReader, matches
from buda_emu.spec.test_config import OTHER_TEST_ARGS, PARAMETER_ARGS, VENDOR_COMPARISONS, key_of_parameter
from buda_emu.spec.varinst import stored_name
from buda_emu.support.checker.checks import TooManyFindingsError
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import replacing
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import quote

_CONFIGS: Final = ("stimulus-config", "comparison-config")
_TOP_KEYS: Final = (*SECTIONS, OWN_SECTION, "test-config", "performance-check")
_TEST_KEYS: Final = ("test-args", "io-config", *_CONFIGS)
_IO_KEYS: Final = ("inputs", "outputs")
MISSPELT: Final = "V218"
UNREAD: Final = "V220"
_PLAIN_CHARACTERS: Final = frozenset("_.-")  # besides letters and digits: "." is part of the names of copies


def name_findings(netlist: Netlist, *, strict: bool) -> list[Diagnostic]:
    """Return a warning for each name of the test sections that no queue, graph, program or op of the netlist has."""
    names = _Names(netlist.path, strict)
    try:
        names.check(netlist)
    except TooManyFindingsError as error:
        names.findings.append(error.last)
    return names.findings


def key_findings(path: str, root: nodes.Mapping, *, strict: bool) -> list[Diagnostic]:
    """Return a warning for each key of a document, of its `test-config` and of its io-config that is none of those
    that are read, but nearly one of them."""
    keys = _Names(path, strict)
    try:
        keys.check_keys(root)
    except TooManyFindingsError as error:
        keys.findings.append(error.last)
    return keys.findings


def section_doubts(findings: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield a text for each finding about a key that looks like a misspelt section, a test-arg that nothing reads, or
    an override of `test-config` for a queue that is not there. `test` and `perf` repeat these as doubts: what the key
    was to have compared, checked or run is not."""
    for finding in findings:
        is_unused_override = finding.rule == "V216" and ": override " in finding.message
        if finding.rule in (MISSPELT, UNREAD) or is_unused_override:
            hint = f" ({finding.hint})" if finding.hint else ""
            yield f"line {finding.line}: {finding.message}{hint}"


class _Names(SectionReader):
    """The checker of the names. Raises TooManyFindingsError."""

    type_rule = "V201"

    def check_keys(self, root: nodes.Mapping) -> None:
        """Report keys of the document and of its test sections that look misspelt."""
        test_config = root.find("test-config")
        self._check_keys_of(root, "", _TOP_KEYS)
        if isinstance(test_config, nodes.Mapping):
            self._check_keys_of(test_config, "test-config: ", _TEST_KEYS)
            io_config = test_config.find("io-config")
            if isinstance(io_config, nodes.Mapping):
                self._check_keys_of(io_config, "io-config: ", _IO_KEYS)

    def _check_keys_of(self, section: nodes.Mapping, label: str, legal: tuple[str, ...]) -> None:
        """Report the keys of a map that are nearly one of the `legal` ones which it does not have. Other keys are
        someone's notes (NETLIST 1.1, 5)."""
        missing = [key for key in legal if section.find(key) is None]
        for key, key_node, _ in section.items():
            hint = near(key, missing)
            if hint and key not in legal:
                self._add(MISSPELT, key_node, f"{label}nobody reads {quote(key)}: it is ignored", hint)

    def check(self, netlist: Netlist) -> None:
        """Report the names that the netlist does not have."""
        for node, message, hint in (*_problems_of_test_config(netlist), *_problems_of_performance_checks(netlist)):
            self._add("V216", node, message, hint)
        for node, message, hint in _problems_of_test_args(netlist):
            self._add(UNREAD, node, message, hint)


_Problem = tuple[nodes.Node, str, str]  # the place, the message, a hint


def _problems_of_test_config(netlist: Netlist) -> Iterator[_Problem]:
    """Yield a problem for each queue that `test-config` names and the netlist does not have."""
    section = netlist.sections.get("test-config")
    if not isinstance(section, nodes.Mapping):
        return
    names = _queue_names(netlist)
    for label in _CONFIGS:
        yield from _problems_of_overrides(label, section.find(label), names)
    io_config = section.find("io-config")
    for key in ("inputs", "outputs"):
        if isinstance(io_config, nodes.Mapping):
            yield from _problems_of_list(io_config.find(key), f"io-config: {key}", "queue", names)


def _problems_of_test_args(netlist: Netlist) -> Iterator[_Problem]:
    """Yield a problem for each key of test-args that neither a parameter of the netlist's programs nor a harness of the
    vendor reads."""
    section = netlist.sections.get("test-config")
    args = section.find("test-args") if isinstance(section, nodes.Mapping) else None
    if not isinstance(args, nodes.Mapping):
        return
    parameters = list(chain.from_iterable(program.parameters for program in netlist.programs.values()))
    conventional = [test_arg for test_arg, _ in PARAMETER_ARGS.values()]
    legal = dict.fromkeys([*map(key_of_parameter, parameters), *conventional, *OTHER_TEST_ARGS])
    for key, key_node, _ in args.items():
        if key not in legal:
            hint = _hint_for_arg(key, parameters, [name for name in legal if args.find(name) is None])
            yield key_node, f"test-args: nothing reads {quote(key)}: it is ignored", hint


def _hint_for_arg(key: str, parameters: Sequence[str], unused: Sequence[str]) -> str:
    """Return the hint for a key of test-args that nothing reads: the key that sets the parameter of this name, else
    the nearest of the `unused` keys, which the section does not have."""
    for parameter in parameters:
        name = stored_name(parameter)
        if stored_name(key) in (name, name.removeprefix("p_")):
            test_arg = key_of_parameter(parameter)
            hint = f"{parameter} takes the value of '{test_arg}'"
            return replacing(hint, key, test_arg) if test_arg in unused else hint
    return near(key, unused)


def _problems_of_overrides(label: str, config: nodes.Node | None, names: dict[str, None]) -> Iterator[_Problem]:
    """Yield a problem for each override of a section whose pattern matches the name of no queue. `label` is the
    section, for messages; `names` are the queues."""
    overrides = None
    if isinstance(config, nodes.Mapping):
        overrides = config.find("overrides")
    if not isinstance(overrides, nodes.Mapping):
        return
    special_names = {DEFAULT, *VENDOR_COMPARISONS}
    for pattern, key, _ in overrides.items():
        if pattern in special_names or pattern in names:
            continue
        # A word without signs matches itself alone: no pattern is compiled for it.
        if not pattern.isidentifier() and any(matches(pattern, name) for name in names):
            continue
        message = f"{label}: override {quote(pattern)} matches the name of no queue: it is never used"
        yield key, message, _hint_for_pattern(pattern, names)


def _hint_for_pattern(pattern: str, names: Iterable[str]) -> str:
    """Return the hint for an override of test-config that matches no queue: the nearest name, or `.*pattern.*` for a
    pattern that matches a part of a name; "" if neither is likely."""
    if all(letter.isalnum() or letter in _PLAIN_CHARACTERS for letter in pattern):
        return near(pattern, names)
    # A pattern has to match the whole name: most of those that match nothing match a part of one.
    partly = [name for name in names if matches(f".*{pattern}.*", name)]
    if partly:
        longer = f".*{pattern}.*"
        return replacing(f"a pattern has to match all of a name: did you mean {quote(longer)}?", pattern, longer)
    return ""


def _problems_of_performance_checks(netlist: Netlist) -> Iterator[_Problem]:
    """Yield a problem for each graph, program and op that `performance-check` names and the netlist does not have."""
    section = netlist.sections.get("performance-check")
    if not isinstance(section, nodes.Mapping):
        return
    names = {"graph": dict.fromkeys(_graph_names(netlist)), "program": dict.fromkeys(netlist.programs)}
    ops = dict.fromkeys(netlist.ops) | dict.fromkeys(op.written_name for op in netlist.ops.values())
    for label, _, check in section.items():
        if not isinstance(check, nodes.Mapping):
            continue
        for kind, legal in names.items():
            word = check.find(f"{kind}-name")
            if isinstance(word, nodes.Scalar) and not word.is_null and word.text not in legal:
                message = f"{label}: there is no {kind} {quote(word.text)}: nothing is checked"
                yield word, message, near(word.text, legal)
        targets = check.find("target-ops")
        if isinstance(targets, nodes.Sequence):
            yield from _problems_of_ops(targets, label, ops)


def _problems_of_ops(targets: nodes.Sequence, label: str, ops: dict[str, None]) -> Iterator[_Problem]:
    """Yield a problem for each target that is no op's name, nor the end of one (NETLIST 6)."""
    for target in targets.items:
        if isinstance(target, nodes.Scalar) and not any(op.endswith(target.text) for op in ops):
            message = f"{label}: target-ops names no op {quote(target.text)}: nothing is checked of it"
            yield target, message, near(target.text, ops)


def _problems_of_list(listed: nodes.Node | None, label: str, kind: str, names: dict[str, None]) -> Iterator[_Problem]:
    """Yield a problem for each entry of a list that is not in `names`; `kind` is the word for such an object in
    messages."""
    if not isinstance(listed, nodes.Sequence):
        return
    for entry in listed.items:
        if isinstance(entry, nodes.Scalar) and entry.text not in names:
            yield entry, f"{label}: there is no {kind} {quote(entry.text)}", near(entry.text, names)


def _queue_names(netlist: Netlist) -> dict[str, None]:
    """Return the names of queues as the file writes them, and those of their copies on several chips."""
    names: dict[str, None] = {}
    for queue in netlist.queues.values():
        names[queue.name] = None
        names[queue.written_name or queue.name] = None
        names[queue.name.removesuffix(f".{queue.target_device}")] = None
    return names


def _graph_names(netlist: Netlist) -> Iterator[str]:
    """Yield the names of graphs, and of those with copies also the name that the file has."""
    for graph in netlist.graphs.values():
        yield graph.name
        yield graph.name.removesuffix(f".{graph.target_device}")
