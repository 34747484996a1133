"""Versions, in a module of their own so that other modules need not import the package's `__init__`."""

__version__ = "1.0.0rc1"

RESULT_VERSION = 1
"""`schema_version` of every result that is printed or written as JSON: within one version fields are only added."""
