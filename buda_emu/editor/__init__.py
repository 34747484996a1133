"""Netlists in editors (docs/editors.md): `server`, with `positions` and `protocol`, speaks the Language Server
Protocol, and nothing else here knows of it. The other files answer questions about one open text, broken or not:
`tree` reads it in pieces, `names` has every name with its uses, `place` says where a cursor is, `completion`,
`hover` and `outline` what their names say.
"""
