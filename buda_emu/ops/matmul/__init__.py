"""matmul: dense, and sparse by an encoding (`identity: true`)."""
