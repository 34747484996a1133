"""One machine under the debugger. `engine.py` runs its programs on a thread of their own, holds them between any two
steps and brings the machine to any moment; `steps.py` receives what a program reports between steps; `stop.py` has the
positions of moments, the goals of a run and the reasons of a stop; `history.py` keeps checkpoints and a log of what
ran; `backwards.py` finds where a step back leads. The package knows no names, expressions or breakpoints."""
