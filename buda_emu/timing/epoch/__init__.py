"""How the ops and transfers of one epoch run beside each other, and what sets the pace."""
