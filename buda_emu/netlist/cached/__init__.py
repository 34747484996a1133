"""Loaded netlists kept between runs (docs/run/cache.md)."""
