"""A kind of document that a package of its own adds to buda-emu: transfers between units, one on each line."""
