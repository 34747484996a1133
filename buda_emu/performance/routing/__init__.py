"""Pipes between buffers, and the streams of each core that carry them out.

`pipes` makes the pipe graph of a temporal epoch (the vendor's net2pipe writes it), `streams` the streams of the overlay
hardware of each core for it (as the vendor's pipegen2 does), with the limits for which a netlist is refused.
"""
