"""The version, apart from the package's door, so that rooms need not import what imports them."""

__version__ = "0.1.0"
