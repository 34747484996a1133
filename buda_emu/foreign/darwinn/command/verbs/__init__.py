"""The work of each verb of `buda-emu darwinn`, on packages of the Edge TPU compiler."""
