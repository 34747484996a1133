"""A process that runs cases for its parent: `python -m buda_emu.verify.runs.child FD`, FD being its end of a pipe."""

import sys
from multiprocessing.connection import Connection

from buda_emu.verify.runs.workers import serve

if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
