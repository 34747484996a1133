"""Results as pictures: floor plans, lanes over time, graphs in DOT."""
