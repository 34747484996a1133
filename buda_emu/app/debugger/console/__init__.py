"""The commands of the debugger as text, as pdb and gdb have them: a table of commands, help that begins with an
example, answers as lines and as data, completion. It reads no terminal: `buda_emu.app.cli` does."""
