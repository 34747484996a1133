"""Generating tokens: modules that share caches which stay on the machine between steps, compiled into one netlist with
a program each (docs/compile/generate.md).
"""
