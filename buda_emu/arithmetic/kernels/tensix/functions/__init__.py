"""The vector unit (SFPU): recorded programs that run on rows of lanes, its fused multiply-add, and random words."""
