"""An op type that a package of its own adds to buda-emu."""
