"""Versions, apart from the package's door, so that rooms need not import what imports them."""

__version__ = "0.1.0"

RESULT_VERSION = 1
"""`schema_version` of every result that is printed or written as JSON: within one version fields are only added."""
