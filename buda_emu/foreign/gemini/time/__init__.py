"""When everything happens: durations, the order of transfers, schedules and assembler files as tasks on `timeline`."""
