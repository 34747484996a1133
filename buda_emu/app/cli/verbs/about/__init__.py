"""Verbs about buda-emu itself: its rules, op types, formats and schemas, its completion and its cache."""
