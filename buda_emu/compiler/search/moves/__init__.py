"""What is changed within one epoch once the timing model has spoken: ops change places so that links and transfers
take less (`wiring`, of single inputs `wires_of_one`), get other numbers of cores (`resized`), or other grids where a
core has too few streams (`connected`). `search.improve` decides by the model which changes stay.
"""
