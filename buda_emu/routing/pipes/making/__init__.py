"""From edges to pipes: who gathers and multicasts, over which NoC, and who reads a queue beside whom."""
