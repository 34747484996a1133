"""What the verbs of `buda-emu darwinn` do: packages of the Edge TPU compiler."""
