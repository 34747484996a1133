"""The vector unit (SFPU): rows of lanes through a recorded program, its fused multiply-add, and random words."""
