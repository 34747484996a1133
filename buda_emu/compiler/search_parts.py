"""The parts of the search for a placement that may be left out by themselves, to measure what each of them gains
(`python -m benchmarks.ablation`; docs/compile/placing.md, "What each part gains").

A search without a part takes the same steps, but skips what the part does. The parts that an objective leaves out are
its `without`."""

from typing import Final


class Part:
    """Names of the parts of the search, plain strings so that they can be sent to workers. The text beside each says
    what it is."""

    CUT_PICKERS: Final = "cut pickers"
    """Forms of the graph with slow pickers cut into several (`forms.fracture_pickers`)."""
    FINER_CUT: Final = "pickers cut finer"
    """The form with pickers cut into more parts, beside that with fewer."""
    SPREAD_PICKERS: Final = "spread pickers"
    """Forms with the slices of slow pickers below each other (`forms.spread_pickers`)."""
    OTHER_FORMS: Final = "other forms"
    """All forms but the one with the best estimate."""
    EARLY_ENDS: Final = "early ends"
    """Epochs that end before the cores are used up, for a cut through less data (`cuts.BACK`)."""
    SHARE_80: Final = "share 0.8"
    """Epochs cut with the expectation that rectangles cover 0.8 of the cores."""
    SHARE_88: Final = "share 0.88"
    """Epochs cut with the expectation that rectangles cover 0.88 of the cores."""
    SHARE_100: Final = "share 1.0"
    """Epochs cut with the expectation that rectangles cover all cores."""
    TRAINING_SHARES: Final = "training shares"
    """Packings of a training with shares of the cores other than 0.94."""
    TRAINING_STEPS: Final = "training steps"
    """Packings of a training with steps other than 0.2 (`placer.STEPS`)."""
    TRANSPOSED_PACKING: Final = "transposed packing"
    """An epoch packed again with transposed grids."""
    CORRECTION: Final = "correction"
    """An epoch packed again with estimates that the timing model corrects."""
    WIRES: Final = "wires"
    """Ops moved so that wires are short (`wiring.rewire`)."""
    EXCHANGES: Final = "exchanges"
    """Moves that exchange two ops of one size."""
    REGIONS: Final = "regions"
    """Moves that exchange all ops within two rectangles."""
    TURNS: Final = "turns"
    """Grids turned by a quarter where a link limits an epoch (`wiring.KindsOfMoves.turns`)."""
    WIDER_OPS: Final = "wider ops"
    """More cores for the ops of a single input that gain most (`pack.widen_ops`)."""
    RESIZING: Final = "resizing"
    """Other numbers of cores for ops of a single input, by the model's schedule (`schedule_changes.resize_ops`)."""
    DEADLINES: Final = "deadlines"
    """Channels by the deadlines of the model's schedule (`schedule_changes.set_deadlines`)."""
    ANNEALING: Final = "annealing"
    """The long search for places of the ops of a single input (`wiring.anneal`)."""
    STREAMS: Final = "streams"
    """Grids with enough streams for operands that go through DRAM (`wiring.limit_to_streams`)."""
    STREAMS_OF_READERS: Final = "streams of readers"
    """Grids with enough streams, those of readers set first."""
    STREAMS_OF_ONE: Final = "streams of one"
    """Grids with enough streams, set for each producer alone."""
    SINGLE_INPUT: Final = "single input"
    """Epochs for the latency of a single input (`single_input.SingleInput`)."""
    LAYERS: Final = "layers"
    """Epochs of a single input that end at the same place of each layer."""
    NEXT_PLACE: Final = "next place"
    """Epochs of a single input that end at the second best place of a layer, by the model."""
    FEWEST_EPOCHS: Final = "fewest epochs"
    """Epochs of a single input that end at the place of a layer that gives the fewest epochs."""
    JOINED_BEGIN: Final = "joined begin"
    """One epoch for all ops up to where an epoch ends in the second layer."""
    REFINEMENT: Final = "refinement"
    """More moves and corrections for the best result (`refine.refine_result`, step 11)."""
    MORE_ROUNDS: Final = "more rounds"
    """Refinement more than once, for the epochs that gained."""
    NEXT_START: Final = "next start"
    """Refinement of the second best start of a single input, too."""
    RECOMBINATION: Final = "recombination"
    """Epochs of another placement, taken over between ends that both have."""
    LIKE_EPOCHS: Final = "like epochs"
    """The decisions of the quickest of several like epochs, copied to the others."""
    PREFETCH: Final = "prefetch"
    """Operand buffers for all that a single input reads of DRAM (`operand_room.add_prefetch_buffers`)."""
    BALANCE: Final = "balance"
    """Buffers moved between channels over all epochs (`channels.balance_channels`)."""


Parts = frozenset[str]
EVERYTHING: Parts = frozenset()
"""Nothing is left out."""
ALL_PARTS: Final = tuple(value for name, value in vars(Part).items() if name.isupper())
TRACKED: Final = frozenset(
    (
        Part.SHARE_80,
        Part.SHARE_88,
        Part.SHARE_100,
        Part.TRANSPOSED_PACKING,
        Part.CORRECTION,
        Part.WIRES,
        Part.TURNS,
        Part.RESIZING,
        Part.DEADLINES,
        Part.ANNEALING,
        Part.STREAMS,
        Part.STREAMS_OF_READERS,
        Part.STREAMS_OF_ONE,
        Part.MORE_ROUNDS,
        Part.RECOMBINATION,
        Part.LIKE_EPOCHS,
    )
)
"""Parts whose results are compared with what there is without them, and dropped where they are no quicker: the search
notes which of them gained anything (`SearchRecord.gained`). Wider ops are not among them, as a packing without them is
another one."""
