"""What would make a netlist faster. Each change that a compiler engineer would try is edited into the text,
modelled, checked against the rules, and measured for what it costs in accuracy (docs/advise.md). `moves` holds
the kinds of change, `search.py` combines them, `evaluate.py` models the edited epochs anew, `edits.py` and
`patch.py` change the text.
"""
