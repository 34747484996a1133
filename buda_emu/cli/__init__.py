"""The command `buda-emu`: `verbs` holds one file for each verb, which parses its arguments, calls the library,
prints the result and returns an exit code; `schemas` describes what verbs write as JSON. The files beside them
are what verbs share: arguments, configuration, console, output. Nothing is computed here.
"""
