"""Seeds of the items of a series: netlists that are generated, faults of a campaign."""


def seed_of(seed: int, number: int) -> int:
    """The seed of item `number`: the same however many are made beside it."""
    return seed * 1_000_003 + number
