"""What net2pipe refuses of an epoch's pipes, and what it only warns of: cores and chips that are not there, streams of
a core beyond those of the chip.
"""
