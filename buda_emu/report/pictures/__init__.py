"""Results as pictures: floor plans, lanes over time, charts, graphs in DOT. `svg` has what all of them write with."""
