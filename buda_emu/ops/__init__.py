"""What an op type does: shape rule, reference function, kernel binding. The words themselves stand in `spec.ops`."""
