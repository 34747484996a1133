"""The parts of PyBUDA's backend module on an emulated machine (NETLIST 7), one subject per file.
`buda_emu.app.backend_api` offers them as one module.
"""
