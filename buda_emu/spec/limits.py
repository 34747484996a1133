"""How much a run is given unless the caller says otherwise."""

DEFAULT_STEP_LIMIT = 10_000_000
"""Instructions, and inputs of epochs, in one run of a program."""
