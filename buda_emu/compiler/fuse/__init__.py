"""Passes on netlist ops before they are placed, one file for each kind of fusion: bias, relu and activation into the
op that produces their operand, chains of element-wise ops into one fused op, and products of integers.
"""
