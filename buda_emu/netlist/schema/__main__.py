"""Write the JSON schema of netlists to standard output."""

import sys

from buda_emu.netlist.schema import text

sys.stdout.write(text())
