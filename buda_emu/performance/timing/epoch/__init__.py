"""How the ops and transfers of one epoch overlap, and what sets the pace."""
