"""An option is named where it is declared and where it acts, and nowhere between: how many files name each one."""

import argparse
import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from buda_emu.app.cli.main import VERBS, build_parser
from shared_files import ROOT

LIMITS = Path(__file__).with_name("options.tsv")
"""For each option the most files that may name it. A number may fall and never rise: `python` with this file writes the
table anew, and refuses where one would rise."""
PACKAGE = ROOT / "buda_emu"
INTERFACES = ("buda_emu/app/", "buda_emu/foreign/")
OF_INTERFACES = frozenset({"arch", "board", "param", "precision", "program", "seed"})
"""Single words that mean the option in the interfaces to users; below, netlists and generators have them, too."""
ANYWHERE = frozenset({"dask", "threads", "timeout", "workers"})
"""Single words that mean the option wherever they are a parameter. All others, such as `name`, mean many things."""
OF_DOCUMENTS = frozenset({"acc_df", "freq_ghz", "noc_bytes"})
"""Options of several words that are words of the documents. All others are counted."""
_KEYWORD_OF = {"param": "parameters", "program": "programs"}  # option -> keyword of the Python API


def option_names() -> set[str]:
    """Return the long options of all verbs that are counted, as names of Python: `memory_limit`."""
    names: set[str] = set()
    for verb in VERBS:
        for leaf in build_parser(verb).below[verb].leaves():
            names.update(option.replace("-", "_") for option in leaf.options)
    return {name for name in names if "_" in name or name in OF_INTERFACES | ANYWHERE} - OF_DOCUMENTS


def names_in(tree: ast.AST) -> set[str]:
    """Return the names that a module has as parameters, keywords of calls, fields of records and attributes of parsed
    arguments, and the options in its texts."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.keyword) and node.arg:
            names.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Attribute) and _is_parsed_arguments(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(word.replace("-", "_") for word in re.findall(r"--([a-z][a-z-]*)", node.value))
    return names


def _is_parsed_arguments(node: ast.expr) -> bool:
    """Return whether an expression is `args`, or an attribute like `self._args`."""
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("args")
    return isinstance(node, ast.Name) and node.id == "args"


@cache
def files_by_option() -> dict[str, list[str]]:
    """Return the files of the package that name each option. An option of several words is looked for by its word; one
    of a single word among the names of `names_in`."""
    options = option_names()
    named: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        text = path.read_text()
        words = set(re.findall(r"\w+", text)) | {word.replace("-", "_") for word in re.findall(r"[\w-]+", text)}
        names = names_in(ast.parse(text))
        for option in options:
            keyword = _KEYWORD_OF.get(option, option)
            if "_" in option:
                is_named = option in words
            else:
                is_counted = option in ANYWHERE or file.startswith(INTERFACES)
                is_named = is_counted and (option in names or keyword in names)
            if is_named:
                named[option].append(file)
    return named


def read_limits() -> dict[str, int]:
    """Return the table: the most files of each option."""
    rows = (line.split("\t") for line in LIMITS.read_text().splitlines()[1:])
    return {option: int(count) for option, count in rows}


def test_no_more_files_name_an_option():
    """Where this fails, hand on the object that has the option instead of the option (docs/architecture.md)."""
    limits = read_limits()
    named = files_by_option()
    more = {
        option: f"{len(files)} files, at most {limits.get(option, 2)}: {', '.join(files)}"
        for option, files in named.items()
        if len(files) > limits.get(option, 2)
    }
    assert more == {}


def test_the_table_is_as_low_as_it_can_be():
    """Fewer files than the table says: write it anew, so that they cannot come back."""
    named = files_by_option()
    assert {option: count for option, count in read_limits().items() if len(named.get(option, ())) < count} == {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", metavar="OPTION", help="print the files that name this option")
    option = parser.parse_args().files
    found = files_by_option()
    if option:
        print("\n".join(found[option]))
    else:
        old = read_limits() if LIMITS.exists() else {}
        risen = [name for name, files in found.items() if len(files) > old.get(name, 10**6 if not old else 2)]
        if risen:
            raise SystemExit(f"more files than before: {', '.join(sorted(risen))}")
        rows = sorted(((len(files), name) for name, files in found.items() if len(files) > 2), reverse=True)
        LIMITS.write_text("option\tfiles\n" + "".join(f"{name}\t{count}\n" for count, name in rows))
