"""A pass by what it makes of a text."""

from textwrap import dedent

from buda_emu.compiler.ir.text import PLACED, parse_ir, print_ir
from buda_emu.compiler.ir.verify import problems
from buda_emu.compiler.pipeline import PASSES, Context


def becomes(name, before, after, context=None):
    """The pass of that name makes one IR text of another, and both keep the rules of their levels."""
    (step,) = [item for item in PASSES if item.name == name]
    context = context or Context()
    given = parse_ir(dedent(before).strip(), target=context.target if step.before == PLACED else None)
    assert (given.level, problems(given)) == (step.before, [])
    (found,) = step.run([given], context)
    assert print_ir(found).splitlines() == [line for line in dedent(after).splitlines() if line.strip()]
    assert (found.level, problems(found)) == (step.after, [])


def stays(name, text, context=None):
    """The pass leaves the text as it is."""
    becomes(name, text, text, context)
