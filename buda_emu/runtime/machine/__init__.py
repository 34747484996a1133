"""What one machine is while it runs: its memory, who may touch it when, and who watches."""
