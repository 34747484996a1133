"""Names of architectures say what they stand for."""

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.devices import DEVICES
from shared_files import ROOT


def test_a_name_that_no_device_table_explains_is_explained():
    for arch in ARCHS.values():
        assert bool(arch.about) == (arch.name not in DEVICES), arch.name
        for page in ("docs/reference/netlist.md", "docs/reference/formats.md"):
            assert arch.about in (ROOT / page).read_text(encoding="utf-8"), (page, arch.name)
