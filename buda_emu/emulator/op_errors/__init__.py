"""Why the chip's answer differs: the error of each op apart from what its operands bring, its cause and the cheapest
repair (docs/run/numerics.md).
"""
