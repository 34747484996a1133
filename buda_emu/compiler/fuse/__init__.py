"""Passes on netlist ops before they are placed, one file for each kind of fusion: bias, relu and activation into the op
that produces their operand, chains of element-wise ops into one fused op, rows with their sums, products with what is
added to them, and products of integers.
"""
