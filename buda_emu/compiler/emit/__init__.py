"""The placement as a `Netlist`: devices, queues, graphs of ops on cores, and the programs that run them. The last
step of the compiler; `buda_emu.netlist.printer` makes text of the result.
"""
