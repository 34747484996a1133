"""Valid netlists at random (docs/stress/generate-netlists.md): `draft.py` holds one while it grows, `operands.py` finds
or makes operands and the TMs that shape them, `builders` has a file for each kind of op, `programs.py` the programs.
"""
