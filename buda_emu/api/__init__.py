"""What other programs import: see `buda_emu.__init__`."""
