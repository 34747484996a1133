"""The backend module of PyBUDA on an emulated machine (NETLIST 7), one subject per file. See
`buda_emu.app.backend_api`.
"""
