"""The units of `buda_emu.tensix` as kernels, module by module under the same names."""
