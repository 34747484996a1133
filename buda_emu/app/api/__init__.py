"""The main tasks of the package, one function for each: load, run, test, perf, sweep, advise and others. A function
reads its inputs, calls the packages below and returns a result object; `buda_emu.__init__` offers most of them by name.
`backend` offers the emulated machine under the names of PyBUDA's backend module.
"""
