"""The pipe graph of a temporal epoch, as the vendor's net2pipe makes it: `maps` of tiles between producer and operand,
`buffers`, `ops` (how ops read), `making` of pipes, and `rules` for what net2pipe refuses.
"""
