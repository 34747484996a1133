"""Verbs for authors of netlists: a first netlist, the layout, the differences of two, the server of editors."""
