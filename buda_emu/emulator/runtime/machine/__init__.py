"""One machine while it runs: its memory, the lock that orders host and program (`gate.py`), the progress of its runs,
and the listeners and the journal that observe it.
"""
