"""Changes within one epoch after the timing model has evaluated it: ops change places so that links and transfers take
less (`wiring`, for single inputs `wires_of_one`), get other numbers of cores (`resized`), or other grids if a core has
too few streams (`connected`). `search.improve` decides by the model which changes stay.
"""
