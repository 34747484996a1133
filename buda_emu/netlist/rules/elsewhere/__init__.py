"""Rules whose findings are made elsewhere, so only their texts stand here: the reader finds what is wrong with the
document, `netlist.testing` what is wrong with its tests, the room `routing` what no pipe can be made of.
"""
