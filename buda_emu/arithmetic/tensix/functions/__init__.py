"""The vector unit (SFPU): its instructions, and the functions that are written in them (DEVICE_NUMERICS 3)."""
