"""The pipe graph of a temporal epoch: its classes, and the reader of the vendor's `pipegen.yaml`."""
