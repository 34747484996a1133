"""The numbered rules of the netlist language: catalogue, checks, `verify`."""
