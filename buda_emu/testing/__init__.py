"""Netlists for those who test compilers, kernels and emulators: `reduce` shrinks one that shows a fault as long as the
fault stays, `generate` makes valid ones at random.
"""
