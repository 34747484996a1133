"""Rules on what nothing refuses and hardly anybody means."""

from buda_emu.netlist.rules.rule import rule

RULES = (
    rule(
        "V208",
        "W",
        "a queue is too small for the inputs of one execute",
        "A graph writes an entry for each of its input_count inputs before the host can take one out, so a result queue"
        " needs at least as many entries. A queue that is streamed into a graph (no prologue, no epilogue, no"
        " global_rdptr_autoinc) is read in batches of input_count, which must divide its entries. `run`, `test` and the"
        " like refuse a netlist whose programs are bound to fail for this.",
        "{entries: 1} fed by an op of a graph with input_count 2",
        "{entries: 2} fed by an op of a graph with input_count 2",
        "NETLIST 4.1, 4.3",
    ),
    rule(
        "V209",
        "W",
        "a reduced result is read element by element",
        "A reduce writes its result into one column (dim c) or row (dim r) of the tile; the other elements are zero. An"
        " op that works element by element uses those zeros, too: a softmax written so is silently wrong. Spread the"
        " result first, by a matmul with a tile of ones (column 0 times ones fills the row), or in a fused op by"
        " tile_broadcast. docs/recipes.md has both.",
        "{type: subtract, inputs: [x, max_of_x], input_1_tms: [broadcast: {c: 2}]} with max_of_x a reduce",
        "{type: matmul, inputs: [max_of_x, ones]} before it",
        "OPS 6.7, 7",
    ),
    rule(
        "V210",
        "W",
        "a comment ignores what is not there, or cannot be ignored",
        "`# buda: ignore[V154]` silences findings of its line, alone on a line those of the next one, and"
        " `# buda: ignore-file[V154]` those of the whole document. A comment without effect hides what comes later."
        " What refuses a netlist when it is loaded cannot be ignored.",
        "# buda: ignore[V15]",
        "# buda: ignore[V154]",
        "docs/ci.md",
    ),
)
