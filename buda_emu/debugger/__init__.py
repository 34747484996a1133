"""The debugger: programs of a netlist stopped anywhere, looked at, changed, and run backwards (docs/debug.md).
`engine.py` holds a program between two steps, `history.py` brings it back, `session.py` is what a user holds;
`expressions` has the language of conditions, `console` the commands, `dap` the protocol of editors.
"""
