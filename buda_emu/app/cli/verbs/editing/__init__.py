"""Verbs for those who write netlists: a first one, the layout, what differs between two, the server of editors."""
