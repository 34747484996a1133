"""The command `buda-emu`: `arguments` declares what each verb takes; `verbs` holds what it does: calls the library,
prints the result and returns an exit code; `schemas` describes what verbs write as JSON. The files beside them are what
verbs share: configuration, console, output. Nothing is computed here.
"""
