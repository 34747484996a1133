"""Rules on one op, with what it reads and where it stands: fields, what its type needs, formats, integers, tiles,
shapes, dest, place, and what the device's pipe compiler refuses.
"""
