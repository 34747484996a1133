"""The debugger: programs of a netlist stopped anywhere, looked at, changed, and run backwards (docs/debug.md).
`machine` holds programs between two steps and brings them back, `session.py` is what a user holds;
`expressions` has the language of conditions, `console` the commands, `dap` the protocol of editors.
"""
