"""An emulated machine: what its memory holds, what its ops compute, programs that run, device images, inputs of a
run.
"""
