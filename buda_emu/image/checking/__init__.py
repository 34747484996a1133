"""Do the parts of an image belong together: its netlist, `device.json`, its tensors, and what the host does."""
