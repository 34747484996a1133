"""What an op type does: shape rule, reference in plain numpy, kernels. One folder for each family of ops: `op.py` is the
model's arithmetic, `device.py` the steps on the device; `on_device` holds what the latter share. Declarations of op
types stand in `spec.ops`."""
