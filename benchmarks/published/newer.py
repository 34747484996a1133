"""What the vendor published later, of its newer stack, beside our figures of the same models.

The figures are those of `models/README.md` of tenstorrent/tt-metal (Apache License 2.0; the YOLOs of the version before
they were removed there).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .models import Model

NOT_ON_BOARD: Final = "not compiled here: the benchmark compiles for no blackhole board"
NO_MODEL: Final = "not compiled here: the benchmark has no such model"
NO_BATCH: Final = f"{NO_MODEL}, and generates one sequence at a time"


@dataclass(frozen=True, slots=True)
class Newer:
    """A newer figure of the vendor: `figure` in `unit` with `batch` inputs at once. `row` names the comparable model of
    MODELS; without one, `reason` says why."""

    title: str
    board: str
    batch: int
    figure: float
    unit: str
    row: str = ""  # a name of MODELS
    reason: str = ""


_IMAGES = "images/s"
_FRAMES = "frames/s"
_SENTENCES = "sentences/s"
_TOKENS = "tokens/s"
NEWER: Final[tuple[Newer, ...]] = (
    Newer("ResNet-50", "n150", batch=16, figure=4700, unit=_IMAGES, row="resnet50"),
    Newer("ResNet-50", "n300", batch=32, figure=9200, unit=_IMAGES, row="resnet50"),
    Newer("ResNet-50", "p150", batch=16, figure=12600, unit=_IMAGES, reason=NOT_ON_BOARD),
    Newer("ViT-Base", "n150", batch=8, figure=1370, unit=_IMAGES, row="vit_base"),
    Newer("ViT-Base", "n300", batch=16, figure=1900, unit=_IMAGES, row="vit_base"),
    Newer("ViT-Base", "p150", batch=10, figure=3700, unit=_IMAGES, reason=NOT_ON_BOARD),
    Newer("MobileNet-V2", "n150", batch=10, figure=3030, unit=_IMAGES, row="mobilenet_v2"),
    Newer("MobileNet-V2", "n300", batch=20, figure=5280, unit=_IMAGES, row="mobilenet_v2"),
    Newer("BERT-Large", "n150", batch=8, figure=270, unit=_SENTENCES, row="bert_large"),
    Newer("Stable Diffusion 1.4", "n150", batch=1, figure=4.83, unit="seconds/image", row="stable_diffusion"),
    Newer("Stable Diffusion 1.4", "p150", batch=1, figure=3.15, unit="seconds/image", reason=NOT_ON_BOARD),
    Newer("Sentence-BERT, base", "n150", batch=8, figure=433, unit=_SENTENCES, reason=NO_MODEL),
    Newer("Sentence-BERT, base", "n300", batch=16, figure=772, unit=_SENTENCES, reason=NO_MODEL),
    Newer("Sentence-BERT, base", "p150", batch=8, figure=929, unit=_SENTENCES, reason=NO_MODEL),
    Newer(
        "Whisper, distil-large-v3",
        "n150",
        batch=1,
        figure=105,
        unit=_TOKENS,
        reason=f"{NO_MODEL}; its Whisper is the small one",
    ),
    Newer(
        "Whisper, distil-large-v3",
        "p150",
        batch=1,
        figure=263.4,
        unit=_TOKENS,
        reason=f"{NO_MODEL}; its Whisper is the small one",
    ),
    Newer(
        "Falcon-7B",
        "n150",
        batch=32,
        figure=592,
        unit=_TOKENS,
        reason="not comparable: the row above has 4 of 32 layers and one sequence",
    ),
    Newer("Llama 3.1 8B", "n150", batch=32, figure=832, unit=_TOKENS, reason=NO_BATCH),
    Newer("Llama 3.1 8B", "p100", batch=32, figure=928, unit=_TOKENS, reason=NO_BATCH),
    Newer("Llama 3.1 8B", "p150", batch=32, figure=1059.2, unit=_TOKENS, reason=NO_BATCH),
    Newer("Llama 3.2 3B", "n150", batch=32, figure=1491.2, unit=_TOKENS, reason=NO_BATCH),
    Newer("Llama 3.2 1B", "n150", batch=32, figure=2576, unit=_TOKENS, reason=NO_BATCH),
    Newer("Mamba 2.8B", "n150", batch=32, figure=451.2, unit=_TOKENS, reason=NO_BATCH),
    Newer("U-Net, VGG19", "n150", batch=1, figure=198, unit=_FRAMES, reason=f"{NO_MODEL}; its U-Net has no VGG19"),
    Newer("U-Net, VGG19", "n300", batch=2, figure=318, unit=_FRAMES, reason=f"{NO_MODEL}; its U-Net has no VGG19"),
    Newer("U-Net, VGG19", "p150", batch=1, figure=320, unit=_FRAMES, reason=f"{NO_MODEL}; its U-Net has no VGG19"),
    Newer(
        "U-Net, vanilla, 480x640",
        "n150",
        batch=1,
        figure=60,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; its U-Net takes 256x256",
    ),
    Newer("SegFormer, 512x512", "n150", batch=1, figure=132, unit=_FRAMES, reason=NO_MODEL),
    Newer(
        "UFLD-v2, 320x800",
        "n150",
        batch=1,
        figure=365,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; no package of the extra `zoo` has it",
    ),
    Newer(
        "UFLD-v2, 320x800",
        "p150",
        batch=1,
        figure=551,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; no package of the extra `zoo` has it",
    ),
    Newer(
        "YOLOv5x, 640x640",
        "n150",
        batch=1,
        figure=67,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; its YOLOv5 is the small one, of 320x320",
    ),
    Newer(
        "YOLOv8s, 640x640",
        "n150",
        batch=1,
        figure=215,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; no package of the extra `zoo` has it",
    ),
    Newer(
        "YOLOv11n, 640x640",
        "n150",
        batch=1,
        figure=234,
        unit=_FRAMES,
        reason=f"{NO_MODEL}; no package of the extra `zoo` has it",
    ),
)


def format_rate(rate: float) -> str:
    """Return a rate with one decimal place up to 100, and without beyond."""
    return f"{rate:.0f}" if rate > 100 else f"{rate:.1f}"


def newer_lines(cells: Mapping[str, Mapping[str, Any]], models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the lines of the section about newer figures; none if the table has none of their models."""
    if not any(newer.row in models for newer in NEWER):
        return
    yield _HEAD
    yield ""
    yield "| model | board | newer stack, measured on silicon | this compiler, modelled | ratio |"
    yield "| --- | --- | ---: | --- | ---: |"
    for newer in NEWER:
        cell = cells.get(f"{newer.row} {newer.board} torch") if newer.row else None
        measured = f"{newer.figure:g} {newer.unit}, {newer.batch} at once"
        if cell is None or cell["problem"]:
            reason = newer.reason or "not measured yet"
            yield f"| {newer.title} | {newer.board} | {measured} | {reason} | - |"
            continue
        rate = models[newer.row].in_published_unit(cell["rate"])
        ratio = rate / newer.figure
        if models[newer.row].runs:  # both are seconds
            ratio = newer.figure / rate
        ours = f"{format_rate(rate)}, {cell['settings']}"
        yield f"| {newer.title} | {newer.board} | {measured} | {ours} | {ratio:.2f} |"
    yield ""
    yield _WHY


_HEAD: Final = """\
## Newer figures of the vendor

The vendor's newer stack (tt-metal) runs models that were written and tuned for it by hand, op by op; this compiler
translates any model to BUDA netlists by itself. Its figures were measured on silicon, ours are modelled, and batches,
formats and settings differ, so the ratio (above 1: we would be faster) orders them and says no more. Ours are the rows
above, at the settings named: format, fidelity, inputs of a round. Nothing was compiled for this table. Stable
Diffusion's newer figure runs from the prompt to the image, ours is 100 runs of the U-Net."""

_WHY: Final = """\
What makes theirs faster where it is, as far as its public figures tell:

* **No epochs.** An epoch of ours reads its blobs and binaries out of DRAM each time it runs, 80,000 cycles with 80
  cores (modelled), while tensors between epochs go through DRAM. A newer program runs ops one after the other on all
  cores, as a recorded trace: tuned products of a whole chip take 1.13 times the cycles of their math kernel on
  wormhole_b0 and 1.05 times on blackhole (median of the public rows), all starts included, and what an op leaves can
  stay in L1 for the next. This counts most where few inputs pass many epochs: Stable Diffusion has 336 of them, with a
  single input each. BUDA could do part of it: fewer, larger epochs for a single input.
* **All cores on one op.** In an epoch each op has some of the cores, and the slowest op sets the pace; where no op
  divides well, cores wait. For BERT-Large and ViT, links are the limit as well: activations stream from op to op over
  the NoC for each input. The newer stack multicasts blocks of operands along rows and columns, in packets of up to
  8 KiB (16 on blackhole); a packet of a BUDA stream is a tile, as the model takes it. BUDA could have fewer and larger
  ops in an epoch, not other streams.
* **Kernels.** Attention is a single kernel there, written by hand, as are norms: scores need not leave a core. This
  compiler fuses softmax and norms, but not the two products around a softmax.
* **Blackhole.** Links and ports carry twice the bytes a cycle (60.9), DRAM 512 GB/s instead of 288, at 1.35 GHz instead
  of 1.0 and with up to 140 cores instead of 72. Together with tuning this makes ResNet-50 2.7 times and ViT 2.7 times
  as fast as on an n150. A netlist compiled for a p150 would have the same chip, without any public figure of its ops.
* Where ours is ahead (MobileNet-V2), the round counts: 256 inputs fill a pipeline, theirs are 10 at once. A modelled
  figure also leaves out what nobody has published of loading; [intervals](../timing/scorecard.md) of `perf` say how
  much this may be."""
