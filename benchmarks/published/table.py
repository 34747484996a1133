"""The file of results, what is missing in it, and the page that shows it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buda_emu.support.strict_json import read_object

from .newer import newer_lines

if TYPE_CHECKING:
    from .models import Model

RESULTS: Final = Path(__file__).parent / "results.json"
ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "compile" / "published.md"
SCHEMA: Final = 1
FIRST: Final = ("n150", "e150")
"""Boards that are measured for all models before the others."""
TOKENS: Final = "tokens/s"
"""The unit of models that generate text."""
Cells = dict[str, dict[str, Any]]
LEAST: Final = {"ideal": 0.9999, "device": 0.97}
"""The least PCC against the original in float32 that is required, by precision."""


def read(path: Path) -> Cells:
    """Return the cells of a file by key, none if there is no file. Raises ValueError for a file of another schema."""
    if not path.exists():
        return {}
    content = read_object(path.read_bytes(), str(path), "the file of results", "take it from the repository again")
    if content.get("schema_version") != SCHEMA:
        raise ValueError(f"{path}: schema version {content.get('schema_version')}, this reads {SCHEMA}")
    return content["cells"]


def keep(path: Path, cell: dict[str, Any]) -> Cells:
    """Put a cell into the file in place of an older one, and return all cells. The file is written whole or not at all,
    so an interrupted run loses no cell, and cells that another run wrote meanwhile stay."""
    older = read(path)
    name = key(cell["model"], cell["board"], cell["form"])
    cells = {**older, name: _with_older_checks(cell, older.get(name, {}))}
    beside = path.with_suffix(".part")
    text = json.dumps({"schema_version": SCHEMA, "cells": dict(sorted(cells.items()))}, indent=1)
    beside.write_text(text + "\n")
    beside.replace(path)
    return cells


def _with_older_checks(cell: dict[str, Any], older: dict[str, Any]) -> dict[str, Any]:
    """Return a cell that was measured without a comparison with the original together with the comparison of an older
    cell; `checked` is the commit of that."""
    if cell.get("pcc") or cell.get("problem") or not older.get("pcc"):
        return cell
    checks = {name: older[name] for name in ("pcc", "tokens") if name in older}
    return {**cell, **checks, "checked": older.get("checked", older.get("commit", ""))}


def key(model: str, board: str, form: str) -> str:
    """Return the name of a cell in the file."""
    return f"{model} {board} {form}"


def missing(
    cells: Cells,
    models: "Mapping[str, Model]",
    boards: Sequence[str] = (),
    forms: Sequence[str] = ("torch", "onnx"),
    again: Sequence[str] = (),
) -> list[tuple[str, str, str]]:
    """Return model, board and form of the cells to measure: all cells of the models named in `again`, else those that
    are not in the file. n150 and e150 by torch come first. ONNX is measured on n150 alone, and not for programs with
    caches."""
    waiting: list[tuple[str, str, str]] = []
    for name in again or models:
        columns = dict.fromkeys((*FIRST, *models[name].figures))
        for board, form in product(boards or columns, forms):
            if form == "onnx" and (board != FIRST[0] or models[name].unit == TOKENS):
                continue
            if again or key(name, board, form) not in cells:
                waiting.append((name, board, form))
    return sorted(waiting, key=_is_late)


def _is_late(cell: tuple[str, str, str]) -> bool:
    """Return whether a cell is measured after those by torch on the first boards."""
    _, board, form = cell
    return form == "onnx" or board not in FIRST


def page(cells: Cells, models: "Mapping[str, Model]") -> str:
    """Return the text of docs/compile/published.md."""
    parts = (_throughput, _below, newer_lines, _correct, _beside, _missing_cells)
    throughput, *others = ("\n".join(part(cells, models)) for part in parts)
    return "\n\n".join([f"{_HEAD}\n{throughput}", _EXPLAINED, *filter(None, others)]) + "\n"


_HEAD: Final = """# The published models

This page compares what the vendor published for 18 models on its boards with the same models compiled by this compiler.
The models come from the libraries that people use, with random weights. **Our figures are modelled, the published ones
were measured on silicon**, so a ratio above 1 does not say that a chip was faster. The page is made by `python -m
benchmarks.published`, which measures what is missing; `--only resnet50` measures one row again (extra `zoo`).

Boards are those of `buda-emu compile --list-boards`; `n300:1` is one chip of an n300. Processor seconds and peak memory
are those of `be.compile`, on a machine that had other work; the number in brackets, if it was measured, is the memory
of the original's own weights. A `+` after a commit says that it had uncommitted changes.

## Throughput

Throughput is end to end: it includes the host link, and the loading of an epoch each time it runs. Settings are those
of the published figure.
"""
_EXPLAINED: Final = """\
The column `what limits us` has the shares of the chip's time of a round:

* *loading*: epochs are loaded;
* *op*, *link*, *memory*, *transfer*: epochs in which a resource of this kind is busy at least nine tenths of the time;
* *buffers*: no resource is busy enough, ops wait for each other;
* *latency*: a single input goes from op to op;
* *host bound*: the host link takes longer than the chip and limits the throughput.

*longest* names what limits the longest epoch, and this epoch's share of the round. If a ratio is below 1, this is where
the time goes.

* Figures of models that generate text count steps of the decoder, one token each, with the host link for its scores but
  without the encoder.
* Falcon-7B has 4 of its 32 layers here and one sequence instead of 32, so it has no ratio.
* Stable Diffusion's figures are seconds for 100 runs of the U-Net: 50 steps, each with and without the prompt, as in
  the published figure. Text encoder, scheduler and VAE run on the host in both. A small version of all three, compiled,
  and a few steps of the scheduler's loop are compared with the original (`published/diffusion.py` and its test).

[perf.md](../timing/perf.md#what-is-modelled-and-what-is-not) says how certain the model is."""


_AMPLIFIED: Final = """\
Attention amplifies errors, as the numerics report shows (`numerics()` of the decoder of T5 with 2 layers of 96, a
window of 32, n150, Float16_b, HiFi3, keys and values of the encoder exact). No op by itself makes an error above 2.6 %
(the exponential of softmax; products 0.6 %, from the 16-bit Dst). But if both matrices before the scores are 4 times as
large, the scores and their rounding errors are 16 times as large, and the exponential turns these absolute errors into
relative ones:

| relative error in the whole run | as in the table | as the library makes it |
| --- | ---: | ---: |
| after self-attention of layer 1 | 0.022 | 0.009 |
| after attention to the encoder | 0.049 | 0.010 |
| after self-attention of layer 2: its scores, softmax, context | 0.10: 0.07, 0.17, 0.25 | 0.011: 0.016, 0.009, 0.013 |
| after attention to the encoder: softmax, context | 0.18: 0.34, 0.45 | 0.011: 0.008, 0.010 |
| scores of the words | 0.18 | 0.013 |
| PCC, device: T5 | 0.980 | 0.99993 |
| PCC, device: FLAN-T5 (gated GELU) | 0.989 | 0.9991 |

With the encoder on the device, too, PCC is 0.924 and 0.858 in the first column, and 0.99992 and 0.9991 in the second:
the encoder's errors enter through keys and values. The report proposes Float32 for `in_df` and `acc_df` of the
exponentials (2.6 % to 0.4 %).

With 24 layers the network is chaotic at these factors. For T5-Large, the PCC between the original in float32 and the
original in float64 is 0.955, and 60 % of the likeliest tokens agree. Queries and keys of T5-Large and FLAN-T5-Large are
therefore 3 times as large, not 4; then PCC between float32 and float64 is 0.9999999 and 0.999997. This sensitivity is
why both are so inexact on the device: a FLAN-T5 of 6 layers of 256 has a PCC of 0.32 there if its matrices are as large
as in the table, and 0.998 if they are as the library makes them."""


_LOW: Final = """\
U-Net and BERT-Large in Bfp8_b at LoFi are just below 0.97. Two causes work against each other: LoFi leaves out the low
bits of mantissas, so products are too small, and a dest register of 16 bits rounds each sum. PCC at effort low:

| format, sums in | U-Net: LoFi, HiFi2, HiFi3 | BERT-Large: LoFi, HiFi2, HiFi3 |
| --- | ---: | ---: |
| Bfp8_b, Float16_b (the default) | 0.963, 0.978, 0.978 | 0.966, 0.973, 0.963 |
| Bfp8_b, Float32 (`--acc-df Float32`) | 0.950, -, 0.997 | 0.945, -, 0.990 |
| Float16_b, Float16_b | -, -, 0.992 | 0.968, -, 0.982 |
| Float16_b, Float32 | -, -, 0.998 | -, -, 0.998 |

The numerics report of a BERT-Large with 2 layers names the ops: the 16-bit dest makes errors of 2.2 % in each product,
5.7 % where one sums 4,096 terms (Float32: 2.0 %), and 6 to 15 % in the means of norms, which are close to 0 (2 to 6 %);
the tanh of the vector unit makes 9.6 % in the pooler. 24 layers add such errors up."""


_DIFFUSION: Final = """\
Stable Diffusion's U-Net is compared as a whole, at effort low and with 64x64 latents: PCC in `ideal` is 0.9999999997,
with `--memory-limit 12G` in 56 s. The process takes 12.0 GiB at its peak (tensors that pass from epoch to epoch are 8.6
GiB in float32). At 32x32 latents (1,936 ops, 236 epochs) PCC is the same, and there are no findings. The vendor's
net2pipe and pipegen2 accept all 465 epochs of the netlist for 64x64 latents at effort low."""


def _throughput(cells: Cells, models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the table of throughput."""
    yield (
        "| model | board | settings | published | modelled | ratio | what limits us | epochs | inputs a round "
        "| compile s | peak MiB | commit |"
    )
    yield "| --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |"
    for name, model in models.items():
        for board in dict.fromkeys((*FIRST, *model.figures)):
            cell = cells.get(key(name, board, "torch"))
            if cell is None or cell["problem"]:
                continue
            figure = model.figures.get(board)
            ratio = model.ratio(cell["rate"], board)
            published = f"{figure:g} {model.unit}" if figure else "-"
            limits = _limits(cell["bounds"], cell.get("longest", ""))
            modelled = model.in_published_unit(cell["rate"])
            yield (
                f"| {model.title} | {board} | {cell['settings']} | {published} "
                f"| {modelled:.{0 if cell['rate'] > 100 else 1}f} "
                f"| {'-' if ratio is None else f'{ratio:.2f}'} "
                f"| {limits} | {cell['epochs']} | {cell['inputs']} | {cell['seconds']:.0f} | {_memory(cell)} "
                f"| {cell['commit']} |"
            )


_WHY: Final = {
    "loading": "epochs are loaded one by one, each time they run. Fewer epochs would help",
    "latency": """a single input goes from op to op; each op waits for the one before it, cores and channels are idle.
  A shorter chain of ops would help""",
    "op": """one op of an epoch computes longer than all others. More cores for this op would help, but the others have
  none to spare""",
    "link": """operands go over links of the network on chip that are full. Placing ops nearer to each other would help,
  or cutting epochs where less is sent""",
    "memory": """channels of DRAM are full, with weights and with tensors that pass from epoch to epoch. Fewer epochs
  would help""",
    "transfer": """an op reads an operand more slowly than it computes. Larger blocks would help, but L1 has no room for
  them""",
    "buffers": """no resource is busy, ops wait for each other. Larger buffers would help where a short branch joins a
  long one""",
}
"""By kind of limit: what it is, and what would help."""
_TELLING: Final = 0.1
"""The least share of the time at which a limit is named."""


def _below(cells: Cells, models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the section about figures below the published ones: the slowest first, with their limits explained."""
    lines: list[tuple[float, str]] = []
    kinds: set[str] = set()
    for title, board, ratio, bounds in _slower_figures(cells, models):
        shares = {kind: share for kind, share in bounds.items() if kind in _WHY and share >= _TELLING}
        limits = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in _descending(shares))
        lines.append((ratio, f"* {title}, {board}, {ratio:.2f} times what was published: {limits}."))
        kinds |= shares.keys()
    if not lines:
        return
    yield "## What is slower than what was published"
    yield ""
    yield from (line for _, line in sorted(lines))
    yield ""
    yield "What these limits are, and what would help:"
    yield ""
    yield from (f"* *{kind}*: {_WHY[kind]}." for kind in _WHY if kind in kinds)


def _slower_figures(
    cells: Cells, models: "Mapping[str, Model]"
) -> Iterator[tuple[str, str, float, Mapping[str, float]]]:
    """Yield title, board, ratio and bounds of the cells below the published figures."""
    for name, model in models.items():
        for board in model.figures:
            cell = cells.get(key(name, board, "torch"))
            if cell is None or cell["problem"]:
                continue
            ratio = model.ratio(cell["rate"], board)
            if ratio is not None and ratio < 1:
                yield model.title, board, ratio, cell["bounds"]


def _descending(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the shares with their kinds, the largest first."""
    return sorted(shares.items(), key=lambda entry: -entry[1])


def _memory(cell: Mapping[str, Any]) -> str:
    """Return the peak in MiB and, in brackets, how much of it are the original's weights; older cells lack that."""
    weights = cell.get("weights", 0)
    peak = f"{cell['memory'] >> 20}"
    return f"{peak} ({weights >> 20})" if weights else peak


def _limits(shares: Mapping[str, float], longest: str) -> str:
    """Return what limits a cell: the largest shares first, down to 5 %, then the limit of the longest epoch."""
    host = shares.get("host link", 0.0)
    chip = sorted(((share, kind) for kind, share in shares.items() if kind != "host link"), reverse=True)
    words = [f"host bound, {host:.1f} times the chip's time"] if host > 1 else []
    words += [f"{kind} {100 * share:.0f} %" for share, kind in chip if share >= 0.05]
    return "; ".join([*words, *([f"longest: {longest}"] if longest else [])])


def _correct(cells: Cells, models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the section about correct results."""
    yield "## Correct"
    yield ""
    yield "One input at full size is compared with the original in float32. `ideal` computes in float32 throughout;"
    yield "`device` has the chip's arithmetic at the published format. A PCC of at least"
    yield f"{LEAST['ideal']} and {LEAST['device']} is required; lower values are marked."
    yield "Findings are those of `check --strict`, including the rules of the vendor's router."
    yield ""
    yield "Models that generate text do so token by token with caches ([generate.md](generate.md)), in `ideal`."
    yield "*tokens* says how many equal those of the original, which computes all of them again each time; PCC is that"
    yield "of the scores of one window. Matrices of these models are 4 times and embeddings 0.3 times as large as the"
    yield "library makes them, so that the tokens differ from each other; this also amplifies rounding errors."
    yield ""
    yield "BERT-Large has 32 labels here, which take as long as two, since a tile has 32 columns: with two labels, PCC"
    yield "could only be 1 or -1. U-Net's batch norms have the statistics of its input; with random statistics its"
    yield "sigmoid gives 0.550 +- 0.004 everywhere, which is one step of bfloat16."
    yield ""
    yield _LOW
    yield ""
    yield _AMPLIFIED
    yield ""
    if "ideal" not in cells.get("stable_diffusion n150 torch", {}).get("pcc", ["ideal"]):
        yield _DIFFUSION
        yield ""
    yield "| model | from | board | PCC, ideal | PCC, device | tokens | commit of these | findings | compile s |"
    yield "| --- | --- | --- | ---: | ---: | --- | --- | ---: | ---: |"
    for name, model in models.items():
        for cell in (cell for cell in cells.values() if cell["model"] == name and not cell["problem"]):
            if cell["form"] != "vendor" and (cell["pcc"] or cell["form"] == "onnx"):
                shown = [_pcc(cell["pcc"].get(word), LEAST[word]) for word in LEAST]
                yield (
                    f"| {model.title} | {model.library}, {cell['form']} | {cell['board']} | {' | '.join(shown)} "
                    f"| {_tokens(cell.get('tokens'))} | {cell.get('checked') or cell['commit']} | {cell['findings']} "
                    f"| {cell['seconds']:.0f} |"
                )


def _tokens(counts: Sequence[int] | None) -> str:
    """Return the cell about generated tokens; `counts` are those equal to the original's, all, and the different
    ones."""
    if not counts:
        return "-"
    same, count, different = counts
    return f"{same} of {count} equal, {different} different ones"


def _pcc(value: float | None, least: float) -> str:
    """Return a PCC for the table, marked if it is below the least one."""
    if value is None:
        return "not measured"
    return f"{value:.7f}" if value >= least else f"**{value:.7f}, too low**"


def _missing_cells(cells: Cells, models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the section about cells that were refused or not measured."""
    yield "## What is missing"
    yield ""
    for name, model in models.items():
        unmeasured: list[str] = []
        for _, board, form in missing({}, {name: model}):
            cell = cells.get(key(name, board, form))
            if cell is None:
                unmeasured.append(f"{board} by {form}")
            elif cell["problem"]:
                yield f"* {model.title}, {board} by {form}: refused: {cell['problem']}"
        if unmeasured:
            yield f"* {model.title}: not measured yet: {', '.join(unmeasured)}."


def _beside(cells: Cells, models: "Mapping[str, Model]") -> Iterator[str]:
    """Yield the table of the vendor's own netlists."""
    yield "## Beside the vendor's own netlists"
    yield ""
    yield "This table has the vendor's own netlists of the same networks, modelled by the same timing model, on a whole"
    yield "chip and at the settings in their names, which are not those of the published figures."
    yield "[placing.md](placing.md#beside-the-vendors-compiler) compares both at the vendor's settings."
    yield ""
    yield "| model | the vendor's netlist | inputs/s, modelled | its epochs | published | ours at published settings |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for cell in cells.values():
        if cell["form"] == "vendor":
            board = "e150" if cell["netlist"].startswith("grayskull") else "n150"
            model = models[cell["model"]]
            ours = cells.get(key(cell["model"], board, "torch"))
            rate = f"{ours['rate']:.0f}" if ours and not ours["problem"] else "-"
            yield (
                f"| {model.title} | `{cell['netlist']}` | {cell['rate']:.1f} | {cell['epochs']} "
                f"| {model.figures[board]:g}, {board} | {rate} |"
            )
