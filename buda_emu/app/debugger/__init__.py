"""The debugger (docs/run/debug.md) stops programs of a netlist anywhere, inspects and changes their data, and runs them
backwards. `session.py` is its interface; `machine` stops programs between two steps and restores earlier states;
`expressions` is the language of conditions, `console` has the commands, `dap` the protocol of editors.
"""
