"""Two runs side by side: which op goes wrong, and why the chip's answer differs."""
