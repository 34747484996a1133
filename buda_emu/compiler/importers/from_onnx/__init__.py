"""ONNX models as graphs. Importing `reader`, or what it imports, imports `onnx`."""
