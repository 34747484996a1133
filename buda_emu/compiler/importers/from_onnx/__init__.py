"""ONNX models as graphs. Importing `reader`, or what it imports, imports `onnx`."""

from buda_emu.compiler.importers.from_onnx.reader import read_file, read_proto

__all__ = ["read_file", "read_proto"]
