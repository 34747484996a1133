"""The interfaces to users: the command, the Python API, PyBUDA's backend module, the language server, the debugger,
the pytest plugin, and the registry of the kinds of documents.
"""
