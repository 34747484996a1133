"""The 18 models of the vendor's published table, compiled, checked and timed: `python -m benchmarks.published`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks beside this one import each other by bare names
