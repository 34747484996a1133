"""The command `buda-emu`: one file per verb; each parses its arguments, calls the library, prints, exits."""
