"""The main jobs of the package, one function for each: load, run, test, perf, sweep, advise, report. A function reads
its inputs, calls the rooms below and returns a result object; `buda_emu.__init__` offers these functions by name.
`backend` is the same machine with the names of PyBUDA's backend module.
"""
