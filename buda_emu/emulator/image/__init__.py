"""Device images: the `.tti` archive of a compiled model (NETLIST 8).

An image comes from somewhere else, so nothing in it is believed: `archive` reads names and bytes of a tar or zip and
unpacks nothing, `metadata` holds what `device.json` says, `checks` hold that against the netlist inside, and
`device_image` gives tensors and a machine, `load` makes one of a file. `pack` writes images. Whatever is wrong raises
`ImageError` with one of `rules`.
"""
