"""The arguments of verbs, one file each with `EXAMPLE` and `add_arguments`. The modules that do the work are imported
by the file of the same name in `cli.verbs`, when the verb is called. `cli/shared_arguments.py` declares arguments that
several verbs share.
"""
