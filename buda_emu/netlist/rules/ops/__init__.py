"""Rules on one op together with its producers and its place: fields, needs of its type, formats, integers, tiles,
shapes, dest, placement, and the limits of the device's pipe compiler."""
