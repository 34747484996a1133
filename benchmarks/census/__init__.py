"""The census: every model class of installed libraries in a small configuration, compiled and compared:
`python -m benchmarks.census`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks beside this one import each other by bare names
