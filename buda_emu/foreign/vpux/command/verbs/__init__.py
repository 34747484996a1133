"""The verbs of `buda-emu vpux`, which work on software-layer schedules of an NPU compiler."""
