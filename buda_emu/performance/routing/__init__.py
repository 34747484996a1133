"""What lies between a netlist and the chip: pipes between buffers, and streams on the cores that carry them out.

`pipes` holds the pipe graph of a temporal epoch (what the vendor's net2pipe writes), `streams` what the overlay
hardware of each core needs for it (what the vendor's pipegen2 writes), with the limits that refuse a netlist.
"""
