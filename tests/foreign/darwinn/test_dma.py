"""The driver's DMA lists from hints."""

import pytest

from buda_emu.foreign.darwinn import descriptors, load
from buda_emu.support.errors import HostError, PackageError
from foreign.darwinn import example_trees as ex


def of(edit=ex.unchanged, **options):
    return [tuple(item) for item in descriptors(load(ex.changed(edit)).main, **options)]


USB = [
    ("instructions", 0, None, 0, 4096), ("input", "image", 0, 0, 384), ("input", "image", 0, 384, 384),
    ("output", "grid", 0, 0, 512), ("output", "scores", 0, 0, 12), ("interrupt_0", None, None, 0, 0),
]  # fmt: skip
FENCE = ("global_fence", None, None, 0, 0)


def test_usb_is_the_hints():
    assert of() == USB
    assert of(overlap=False) == [*USB, FENCE]


def test_pcie_is_the_chunks():
    assert of(transport="pcie") == USB[:1]
    assert of(transport="pcie", overlap=False) == [USB[0], FENCE]


def incomplete(tree):
    ex.main(tree)["dma_hints"]["fully_deterministic"] = False


def test_an_incomplete_list_ends_with_a_fence():
    assert of(incomplete) == [*USB, FENCE]


def test_scratch_goes_by_direction_and_fences_are_local():
    def edit(tree):
        scratch = {"meta": {"desc": "BASE_ADDRESS_SCRATCH"}, "size_in_bytes": 8}
        ex.main(tree)["dma_hints"]["hints"] = [
            {"any_hint_type": "DmaDescriptorHint", "any_hint": scratch, "direction": "OUTFEED"},
            {"any_hint_type": "FenceHint", "any_hint": {}},
            {"any_hint_type": "DmaDescriptorHint", "any_hint": scratch, "direction": "INFEED"},
            {"any_hint_type": 9},
        ]

    assert [item[0] for item in of(edit)] == ["scratch_out", "local_fence", "scratch_in"]


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda tree: ex.main(tree).update(dma_hints=None), "D050"),
        (lambda tree: ex.hint(tree, 1).update(meta=None), "D051"),
        (lambda tree: ex.hint(tree, 1)["meta"].update(name="other"), "D051"),
        (lambda tree: ex.hint(tree, 0).update(instruction_chunk_index=1), "D055"),
        (lambda tree: ex.hints(tree)[1].update(any_hint_type="NONE", any_hint=None), "D056"),
        (lambda tree: ex.hint(tree, 5).update(type=4), "D058"),
    ],
)
def test_where_the_driver_aborts_is_an_error(edit, rule):
    with pytest.raises(PackageError, match=rule):
        of(edit)


def test_an_unknown_transport_is_refused():
    with pytest.raises(HostError, match="usb, pcie"):
        of(transport="i2c")
