"""What is compiled is taken by the vendor's router (../shared/routing), on both of its chips."""

import pytest

import buda_emu as be
from shared_files import SHARED
from vendor_router import ARCHS, needs_vendor_router, refusal

onnx = pytest.importorskip("onnx")
pytestmark = needs_vendor_router
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))
QUICK = {("mlp", "wormhole_b0"), ("lenet", "grayskull"), ("lenet", "wormhole_b0"), ("dlrm", "grayskull")}


def held(model, arch, folder, **words):
    """Compiled, with no finding of ours and none of the vendor's."""
    compiled = be.compile(model, arch=arch, **words)
    assert compiled.check(strict=True) == ()
    assert refusal(compiled.text, arch, folder) == ""
    return compiled


@pytest.mark.parametrize(
    ("path", "arch"),
    [
        pytest.param(path, arch, id=f"{path.stem}-{arch}", marks=() if (path.stem, arch) in QUICK else pytest.mark.slow)
        for path in MODELS
        for arch in ARCHS
    ],
)
def test_models_of_many_families(path, arch, tmp_path):
    held(path, arch, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [{"effort": "low"}, {"effort": "high"}, {"df": "Bfp8_b", "fidelity": "LoFi"}, {"microbatch": 1}]
)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["mobilenet", "bert", "unet"])
def test_every_effort_and_format(name, arch, words, tmp_path):
    held(next(path for path in MODELS if path.stem == name), arch, tmp_path, **words)
