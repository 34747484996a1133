"""How values are computed: numba functions on plain arrays. They know nothing of netlists, ops or devices."""
