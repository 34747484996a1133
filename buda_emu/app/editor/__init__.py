"""Netlists in editors (docs/netlists/editors.md). `server` speaks the Language Server Protocol; no other file
knows the protocol. The other files answer questions about one open text, broken or not: `tree` reads it in pieces,
`names` finds every name and its uses, `place` says where a cursor is, and `completion`, `hover` and `outline` answer
the requests of these names.
"""
