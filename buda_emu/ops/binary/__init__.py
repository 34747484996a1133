"""add, subtract, multiply, maximum, and quantization, requantization, dequantization."""
