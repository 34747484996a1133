"""The work of the verbs of `buda-emu`: one file each with `main`, imported when the verb is called. `about` and
`editing` are groups of verbs."""
