"""Advice that makes a netlist faster (docs/timing/advise.md). Each change that a compiler engineer would try is edited
into the text, modelled, checked against the rules, and measured for its cost in accuracy. `moves` holds the kinds of
change, `search.py` combines them, `evaluate.py` models the edited epochs again, `edits.py` and `patch.py` change the
text.
"""
