"""The command `buda-emu`. `arguments` declares what each verb takes. `verbs` holds what it does: it calls the library,
prints the result and returns an exit code. The files beside them are
shared by verbs: configuration, console, output. Nothing is computed here.
"""
