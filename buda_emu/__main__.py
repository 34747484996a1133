"""`python -m buda_emu` is the command `buda-emu`."""

from buda_emu.app.cli.entry import entry

if __name__ == "__main__":
    entry()
