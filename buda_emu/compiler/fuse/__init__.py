"""Netlist ops put together before they are placed, one file for each way."""
