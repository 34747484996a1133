"""`buda-emu explain V041`: what a rule of the checker means."""

import argparse
import textwrap
from difflib import get_close_matches

from buda_emu.cli.output import complain, say
from buda_emu.report.text import table

EXAMPLE = "buda-emu explain V041"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("rule", nargs="*", metavar="RULE", help="rule ids as printed by check; none: list all")


def main(args: argparse.Namespace) -> int:
    """Print each rule's explanation. Exit code 2 for an id that does not exist."""
    from buda_emu.image.rules import RULES as IMAGE_RULES
    from buda_emu.netlist.rules.registry import RULES
    from buda_emu.netlist.rules.rule import STAGES

    if not args.rule:
        say(table(("rule", "stage", "refuses a netlist when"), ((r.id, r.stage, r.summary) for r in RULES.values())))
        return 0
    code = 0
    for number, text in enumerate(args.rule):
        if text in IMAGE_RULES:
            say(f"{text}: {IMAGE_RULES[text].says}\n  To do: {IMAGE_RULES[text].fix}.")
            continue
        digits = text.upper().removeprefix("V")
        rule = RULES.get(f"V{digits:0>3}")
        if rule is None:
            near = get_close_matches(text.upper(), list(RULES), n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            complain(f"buda-emu explain: no rule {text}{hint}; `buda-emu explain` lists all")
            code = 2
            continue
        if number:
            say()
        say(f"{rule.id}: {rule.summary}")
        say(f"  {STAGES[rule.stage]}")
        for paragraph in filter(None, rule.explanation.split("\n\n")):
            say()
            say(textwrap.fill(" ".join(paragraph.split()), 100, initial_indent="  ", subsequent_indent="  "))
    return code
