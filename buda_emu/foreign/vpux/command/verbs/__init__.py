"""What the verbs of `buda-emu vpux` do: software-layer schedules of an NPU compiler."""
