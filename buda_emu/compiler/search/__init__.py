"""The search for a placement: what place offers, judged by the timing model (docs/placing.md)."""
