"""One machine under the debugger. `engine.py` holds its programs between any two steps and brings it to any moment:
`steps.py` is what a program tells between steps, on the thread of `worker.py`; `position.py` numbers moments, `goal.py`
and `stop.py` say where a run is to stop and where it did, `history.py` keeps checkpoints, `log.py` what ran,
`backwards.py` leads a step back. Knows no names, expressions or breakpoints.
"""
