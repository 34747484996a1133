"""The entry of `python -m buda_emu`, which is the same command as `buda-emu`."""

from buda_emu.app.cli.entry import entry

if __name__ == "__main__":
    entry()
