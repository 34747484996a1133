"""The pipe graph of a temporal epoch, as the vendor's net2pipe makes it: `edge` maps tiles from a producer to an
operand, `ops` says how ops read, `buffers` and `make_pipes` make the graph, `build` refuses what net2pipe refuses."""
