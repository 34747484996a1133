"""What lies where in an archive, tar or zip, before a byte of it is unpacked. Names, sizes and places are read from
headers and bounded there, so that a hostile file takes no memory.
"""
