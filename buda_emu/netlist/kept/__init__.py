"""Loaded netlists kept between runs (docs/cache.md)."""
