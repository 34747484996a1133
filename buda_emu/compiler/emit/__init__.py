"""Netlist text."""
