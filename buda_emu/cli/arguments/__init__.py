"""What verbs take, one file each with `EXAMPLE` and `add_arguments`, without what they need to do their work, which the
file of the same name in `cli.verbs` imports when the verb is called. `cli/shared_arguments.py` declares what several
take."""
