"""Data that moves in an epoch: bytes between ops and queues, their ways over the NoCs, rates, and loading."""
