"""What verbs take: `shared` declares what several do, each other file the arguments of one verb, without what it needs
to do its work, which the file of the same name in `cli.verbs` imports when the verb is called."""
