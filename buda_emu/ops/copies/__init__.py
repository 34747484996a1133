"""nop, datacopy, ethernet_datacopy."""
