"""Valid netlists at random (docs/stress/generate-netlists.md). `netlist.py` makes one with its programs, `draft.py`
holds it while it grows, `operands.py` finds or makes operands and the TMs that shape them, `builders.py` and
`builders_of_products.py` add ops of each kind."""
