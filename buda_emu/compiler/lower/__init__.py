"""From graph nodes to netlist ops on tiles: one file for each family of core ops. A lowering knows shapes, formats
and tile layouts, but no cores.
"""
