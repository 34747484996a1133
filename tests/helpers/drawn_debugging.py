"""Expressions, commands and requests of the debugger, drawn at random: most are odd, some are right."""

from itertools import repeat

LEAVES = (
    "1", "0", "1e308", "1e999", ".5", "9" * 400, "$i", "$x_local", "$p_loop_count", "$none", "input", "inputs",
    "instruction", "absmax(op:h)", "nan(x)", "rd(x)", "occupancy(x)", "max(op:a)", "pcc(op:h, ideal)", "maxdiff(h, x)",
    "x[0]", "x[99999999999999999999]", "mean('x')", "op:h", "²", "١", "", "\x00", "\ud800",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "%", "<", "==", " and ", " or ", "**", ",")
COMMANDS = (
    "print {}", "break if {}", "break a if {}", "tbreak {}", "condition 1 {}", "ignore 1 {}", "watch {}", "list {}",
    "write x[0] {}", "write x[0] tile 0,0 {}", "set $x_local = {}", "why {}", "diff x[0] {}", "delete {}", "next {}",
    "step {}", "back {}", "info {}", "help {}", "into {}", 'dprintf a, "{{{}}}"', "{}", "{} x", "display {}",
)  # fmt: skip


def expression(chance):
    """A leaf, or leaves in a long chain, deep parentheses, or behind many signs."""
    leaf = chance.choice(LEAVES)
    count = chance.choice((1, 3, 49, 51, 199, 201, 3000))
    match chance.randrange(6):
        case 0:
            return leaf
        case 1:
            return chance.choice(OPERATORS).join(repeat(leaf, count))
        case 2:
            return "(" * count + leaf + ")" * chance.choice((count, count - 1))
        case 3:
            return chance.choice(("-", "not ", "- not ", "--")) * count + leaf
        case 4:
            return "".join(chance.choice(LEAVES) + chance.choice(OPERATORS) for _ in range(count)) + leaf
        case _:
            return "(1+" * count + leaf + ")" * count


def command(chance):
    """A line of the console."""
    return chance.choice(COMMANDS).format(argument(chance))


def argument(chance):
    """Words that a command or request may take."""
    odd = (
        "",
        "9" * 5000,
        "-1",
        "0x7fffffffffffffff",
        "tile 0,0",
        f"tile {'9' * 5000},0",
        "/dev/zero.npy",
        "a" * 10_000,
    )
    return chance.choice(odd) if chance.random() < 0.4 else expression(chance)


def value(chance, depth=0):
    """Any value of JSON."""
    plain = (None, True, False, 0, 1, -1, 2**31, 2**63, 10**300, 0.5, 1e308, "", "x", "x[0]", "\ud800", [], {})
    if depth < 2 and chance.random() < 0.2:
        return {chance.choice(("line", "name", "condition", "path")): value(chance, depth + 1)}
    if depth < 2 and chance.random() < 0.2:
        return [value(chance, depth + 1)]
    return chance.choice(plain) if chance.random() < 0.7 else argument(chance)


NAMES = (
    "threadId", "frameId", "variablesReference", "start", "count", "startFrame", "levels", "expression", "context",
    "value", "name", "memoryReference", "offset", "data", "text", "column", "source", "breakpoints", "filters",
    "granularity", "dataId", "line", "allowPartial", "requestId",
)  # fmt: skip


def arguments(chance):
    """Of a request."""
    found = {name: value(chance) for name in chance.sample(NAMES, chance.randrange(6))}
    if chance.random() < 0.6:
        found |= {"expression": expression(chance), "context": chance.choice(("watch", "hover", "repl"))}
    if found.get("context") == "repl":
        found["expression"] = command(chance)
    if chance.random() < 0.5:
        found |= {"threadId": 1, "frameId": chance.randrange(5), "variablesReference": chance.randrange(12)}
    if chance.random() < 0.3:
        found["breakpoints"] = [
            {
                "name": chance.choice(("op a", "nan", argument(chance))),
                "line": chance.choice((1, 60, 10**30)),
                "condition": expression(chance),
                "hitCondition": argument(chance),
            }
        ]
    return found
