"""Is what the compiler writes taken by its own rules and by the vendor's programs, and does it compute what torch does?

    python benchmarks/acceptance.py                          # all models, one setting for each
    python benchmarks/acceptance.py --rounds 10 --rows rows.jsonl   # every setting; goes on where it was stopped
    python benchmarks/acceptance.py --only gpt train. --archs grayskull
    python benchmarks/acceptance.py --sample 100 --seed 7    # any models, settings and architectures

Models are those of `zoo/small.py`, `zoo/of_packages.py` and `zoo/of_transformers.py` (of installed packages),
`zoo/small_onnx.py`, trainings and generations. Each is compiled for each architecture with an effort, formats,
objective and number of chips that change from model to model and from round to round; the result is held against `check
--strict`, net2pipe and pipegen2 (where `BUDA_EMU_ROUTER` names them) and, in precision `ideal`, against torch or
onnxruntime. One line for each that is not right, with what is said against it; exit status 1 if there is any.
`--rows` keeps a line of JSON for each case; lines of other code or models do not count.
"""

import argparse
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import buda_emu as be
from buda_emu.compiler.compiled import difference
from buda_emu.support.identity import code_identity, digest, file_digest
from buda_emu.support.strict_json import read_object
from conditions import conditions
from zoo import of_packages, of_transformers, small, small_onnx

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/helpers"))
import vendor_router
from gpt import GPT
from t5 import T5, Decode, Encode

PCC = 0.9999
ARCHS = ("grayskull", "wormhole_b0")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"effort": "low", "df": "Bfp8_b", "fidelity": "LoFi"},
    {"effort": "high"},
    {"df": "Float16", "fidelity": "HiFi2", "microbatch": 1},
    {"objective": "latency"},
    {"effort": "low", "df": "Float32", "fidelity": "HiFi4"},
    {"df": "Bfp8", "fuse": False},
    {"effort": "high", "df": "Bfp8_b", "objective": "cores"},
    {"chips": 2},
    {"chips": 2, "objective": "latency"},
    {"chips": 3, "effort": "low", "df": "Bfp8_b"},
    {"mixed": [{"match": "*[13579]", "df": "Bfp8_b", "fidelity": "LoFi"}, {"match": "*2*", "fidelity": "HiFi4"}]},
    {"df": "Float16", "effort": "high", "mixed": [{"match": "*[02468]", "df": "Bfp8"}]},
    {"chips": 4, "effort": "high"},
)
TRAINED = (
    "odd_convolutions", "wide_mlp", "masked_attention", "word_classifier", "gated_recurrent", "mixer",
    "linear_attention", "squeeze_and_excite", "splits_and_joins", "encoder_layers",
)  # fmt: skip
QUANTISED = ("odd_convolutions", "grouped_convolutions", "wide_mlp", "sound", "encoder_layers", "mixer", "small_unet")
PACKAGED_TRAINED = (
    "transformers.bert", "transformers.gpt2", "transformers.llama", "transformers.vit", "transformers.t5",
    "transformers.resnet", "transformers.convnext", "transformers.wav2vec2", "timm.mobilenetv2", "timm.resnet10t",
    "timm.mixer", "timm.convnext_small", "torchvision.shufflenet", "torchvision.squeezenet",
)  # fmt: skip
PACKAGED_QUANTISED = (
    "transformers.bert", "transformers.vit", "transformers.mobilenet_v1", "transformers.convnext", "timm.resnet10t",
    "timm.mobilenetv2", "timm.mixer", "torchvision.squeezenet", "torchvision.shufflenet",
)  # fmt: skip
OPTIMIZERS = ("sgd", "adam", "adamw")

Check = Callable[[], float]
Built = tuple[Any, Check]
"""What was compiled, and the least correlation of its values with the source's."""


@dataclass(slots=True)
class Row:
    """One model, compiled one way. `verdict`: right, or which judge is against it."""

    case: str
    arch: str
    words: dict[str, Any]
    verdict: str = "right"
    why: str = ""
    pcc: float = 1.0
    ops: int = 0
    epochs: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    """Seconds of processor time, which a busy machine does not change; those of the vendor's programs not counted."""

    code: str = ""
    """Of which code it is true (`code`)."""

    @property
    def key(self) -> str:
        """What it is known by."""
        return f"{self.case} {self.arch} {self.words}"


def inference(build: Callable[[], small.Source], **words: Any) -> Built:
    """A torch module."""
    module, inputs = build()
    with torch.no_grad():
        expected = module(*inputs)
    compiled = be.compile(module, inputs, **words)
    want = expected if isinstance(expected, tuple) else (expected,)
    return compiled, lambda: least(want, compiled(*inputs))


def least(expected: Sequence[Any], got: Sequence[Any]) -> float:
    """The least correlation of two lists of arrays; of what is the same everywhere, as gradients behind a mean are, 1
    where it is equal to a thousandth."""
    return min(_alike(np.asarray(want, np.float64), have) for want, have in zip(expected, got, strict=True))


def _alike(want: Any, have: Any) -> float:
    most = float(np.abs(want).max())
    if np.ptp(want) > 1e-3 * most:
        return difference("", want, have).pcc or 0.0
    return float(np.abs(want - have).max() <= 1e-3 * most)


def onnx_graph(build: Callable[[], small_onnx.Source], **words: Any) -> Built:
    """An ONNX graph."""
    model, inputs = build()
    compiled = be.compile(model, inputs, **words)
    want = small_onnx.outputs(model, inputs)
    return compiled, lambda: least(want, compiled(*inputs))


def quantised(build: Callable[[], small.Source], **words: Any) -> Built:
    """A torch module as an ONNX graph in QDQ form, held against onnxruntime."""
    model, inputs = small_onnx.quantised(*build())
    compiled = be.compile(model, inputs, **words)
    want = small_onnx.outputs_of_onnxruntime(model, inputs)
    return compiled, lambda: least(want, compiled(*inputs))


def training(build: Callable[[], small.Source], number: int, **words: Any) -> Built:
    """A step of a training: its loss and gradients."""
    module, inputs = build()
    with torch.no_grad():
        target = torch.randn_like(module(*inputs))
    compiled = be.compile_training(module, inputs, loss="mse", optimizer=OPTIMIZERS[number % 3], target=target, **words)

    def check() -> float:
        loss = torch.nn.functional.mse_loss(module(*inputs), target)
        loss.backward()
        own = compiled.train_step(inputs, target)
        if abs(own - loss.item()) > 1e-3 * abs(loss.item()):
            return 0.0
        found = compiled.gradients()
        wanted = {name: item.grad.numpy() for name, item in module.named_parameters() if item.grad is not None}
        most = max(np.abs(item).max() for item in wanted.values())
        names = [name for name, item in wanted.items() if np.abs(item).max() > 1e-4 * most and item.size > 1]
        return least([wanted[name] for name in names], [found[name] for name in names])

    return compiled, check


def decoder(width: int, heads: int, layers: int, **words: Any) -> Built:
    """Tokens of a decoder with caches: the share that is torch's."""
    torch.manual_seed(width)
    model = sharpened(GPT(150, width, heads, layers, 64))
    compiled = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()), **words)
    prompt = torch.randint(0, 150, (5,)).tolist()
    return compiled, lambda: same(model.greedy(prompt, 30), compiled.generate(prompt, 30))


def packaged_decoder(name: str, **words: Any) -> Built:
    """The same of a decoder of transformers, whose keys and values lie in its own class of caches."""
    torch.manual_seed(sum(map(ord, name)))
    model = sharpened(of_transformers.Windows(*of_transformers.TRANSFORMERS[name][:3]))
    compiled = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()), **words)
    prompt = torch.randint(3, 200, (5,)).tolist()
    return compiled, lambda: same(model.greedy(prompt, 30), compiled.generate(prompt, 30))


def encoder_and_decoder(width: int, heads: int, layers: int, **words: Any) -> Built:
    """The same of two programs."""
    torch.manual_seed(width)
    model = sharpened(T5(150, width, heads, layers, 32, 64))
    encode = Encode(model).eval()
    decode = Decode(model).eval()
    compiled = be.compile_programs(
        {
            "encode": be.Program(encode, encode.example(), encode.keeps()),
            "decode": be.Program(decode, decode.example(), decode.keeps()),
        },
        **words,
    )
    source = torch.randint(0, 150, (32,)).tolist()

    def check() -> float:
        compiled(torch.tensor([source]), program="encode")
        return same(model.greedy(source, [0], 20), compiled.generate([0], 20, program="decode"))

    return compiled, check


def sharpened(module: Any) -> Any:
    """With larger weights, so that the likeliest token is not a close call between equals."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    return module.eval()


def same(expected: Sequence[int], got: Sequence[int]) -> float:
    """The share of equal tokens."""
    return float(np.mean(np.asarray(expected) == np.asarray(got)))


def cases(*, packaged: bool = True) -> dict[str, Callable[..., Built]]:
    """By name, all that there is, with the models of installed packages or without."""
    found: dict[str, Callable[..., Built]] = {
        f"torch.{name}": partial(inference, build) for name, build in small.MODELS.items()
    }
    if packaged:
        found |= {name: partial(inference, build) for name, build in of_packages.models().items()}
    found |= {f"onnx.{name}": partial(onnx_graph, build) for name, build in small_onnx.MODELS.items()}
    sources = {name: small.MODELS[name] for name in TRAINED}
    found |= {f"int8.{name}": partial(quantised, small.MODELS[name]) for name in QUANTISED}
    if packaged:
        strangers = of_packages.models()
        sources |= {name: strangers[name] for name in PACKAGED_TRAINED if name in strangers}
        found |= {
            f"int8.{name}": partial(quantised, strangers[name]) for name in PACKAGED_QUANTISED if name in strangers
        }
        if any(name.startswith("transformers.") for name in strangers):
            found |= {f"generate.{name}": partial(packaged_decoder, name) for name in of_transformers.GENERATING}
    for number, (name, build) in enumerate(sources.items()):
        found[f"train.{name}"] = partial(training, build, number)
    for width, heads, layers in ((48, 3, 1), (64, 2, 2), (96, 6, 3)):
        found[f"generate.gpt{width}"] = partial(decoder, width, heads, layers)
        found[f"generate.t5_{width}"] = partial(encoder_and_decoder, width, heads, layers)
    return found


def settings(case: str, arch: str, number: int) -> dict[str, Any]:
    """What this case is compiled with; trainings, generations and grayskull take one chip."""
    words = dict(SETTINGS[number % len(SETTINGS)])
    if case.startswith(("train.", "generate.")):
        words.pop("microbatch", None)
    if arch == "grayskull" or case.startswith(("train.", "generate.")):
        words.pop("chips", None)
    return words


def judge(row: Row, build: Callable[..., Built], folder: Path) -> Row:
    """Compile one case and ask all judges, the first that is against it has the word."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled, check = timed(row, "compile", lambda: build(arch=row.arch, **row.words))
            row.ops = len(compiled.placement.ops)
            row.epochs = compiled.placement.epochs
            if findings := timed(row, "check", lambda: compiled.check(strict=True)):
                return against(row, "strict", f"{len(findings)}: {findings[0]}")
            if vendor_router.AVAILABLE:
                chips = int(row.words.get("chips", 1))
                said = timed(row, "vendor", lambda: vendor_router.refusal(compiled.text, row.arch, folder, chips=chips))
                if said:
                    (folder.parent / f"{row.case}-{row.arch}.yaml").write_text(compiled.text)
                    return against(row, "vendor", said)
            row.pcc = timed(row, "run", check)
            if not row.pcc >= PCC:
                return against(row, "values", f"PCC {row.pcc:.6f}")
    except (be.UnsupportedError, be.HostError) as error:
        return against(row, "refused", str(error))
    except Exception as error:  # noqa: BLE001 - what is wrong with one case must not hide the others
        return against(row, "error", f"{type(error).__name__}: {error}")
    return row


def against(row: Row, verdict: str, why: str) -> Row:
    """The row with what is said."""
    row.verdict = verdict
    row.why = why[:1000]
    return row


def timed(row: Row, what: str, work: Callable[[], Any]) -> Any:
    """What it gives; the row has its seconds."""
    start = time.perf_counter()
    processor = time.process_time()
    try:
        return work()
    finally:
        row.seconds[what] = round(time.perf_counter() - start, 2)
        row.processor[what] = round(time.process_time() - processor, 2)


def kept(path: Path | None) -> dict[str, Row]:
    """Rows of an earlier run of this very code: those of another are not known to be true of this one. Ends the program
    for a line that is no row."""
    if path is None or not path.exists():
        return {}
    rows: dict[str, Row] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = Row(**read_object(line, f"{path}:{number}", "a row", "remove this line"))
        except (be.HostError, TypeError) as error:
            sys.exit(f"{path}:{number}: not a row of this program: remove this line, or give another file ({error})")
        if row.code == code():
            rows[row.key] = row
    return rows


@cache
def code() -> str:
    """The identity of what is judged, and of the models that it is judged by."""
    models = sorted(Path(__file__).parent.glob("zoo/*.py"))
    return digest((code_identity(), torch.__version__, [file_digest(path) for path in (*models, Path(__file__))]))


def shown(rows: Sequence[Row]) -> int:
    """Print what is not right, and the sums. Returns the exit status."""
    wrong = [row for row in rows if row.verdict != "right"]
    for row in wrong:
        print(f"{row.verdict}: {row.key}: {row.why[:400]}")
    seconds: Counter[str] = Counter()
    for row in rows:
        seconds.update(row.seconds)
    print(", ".join(f"{count} {verdict}" for verdict, count in Counter(row.verdict for row in rows).most_common()))
    print("seconds: " + ", ".join(f"{what} {value:.0f}" for what, value in seconds.items()))
    return 1 if wrong else 0


def planned(args: argparse.Namespace) -> Iterator[Row]:
    """What is to be judged: models in turn, each with another setting, round by round; or a sample."""
    if args.sample:
        drawn = random.Random(args.seed)
        names = [name for name in cases() if not args.only or any(word in name for word in args.only)]
        for _ in range(args.sample):
            name = drawn.choice(names)
            arch = drawn.choice(args.archs)
            number = drawn.randrange(len(SETTINGS))
            yield Row(name, arch, settings(name, arch, number))
        return
    for turn in args.settings or range(args.rounds):
        for number, name in enumerate(cases()):
            if args.only and not any(word in name for word in args.only):
                continue
            for arch in args.archs:
                own = turn if args.settings else number + 3 * ARCHS.index(arch) + turn
                yield Row(name, arch, settings(name, arch, own))


def main() -> int:
    """Go through all and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="cases whose names hold one of these")
    parser.add_argument("--archs", nargs="+", default=list(ARCHS), choices=ARCHS)
    parser.add_argument("--rounds", type=int, default=1, help=f"{len(SETTINGS)} give every model every setting")
    parser.add_argument(
        "--settings", nargs="+", type=int, metavar="N", help="these for every model instead; 0 is the default"
    )
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of all combinations, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keeps a line of JSON for each; goes on behind them")
    parser.add_argument("--again", action="store_true", help="repeat what was not right")
    args = parser.parse_args()
    print(conditions(), "" if vendor_router.AVAILABLE else "; without the vendor's programs, which are not here")
    known = kept(args.rows)
    rows = []
    names = cases()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.rows.parent / "refused" if args.rows is not None else Path(scratch)) / "now"
        for row in planned(args):
            old = known.get(row.key)
            if old is None or (args.again and old.verdict != "right"):
                old = known[row.key] = judge(row, names[row.case], folder)
                old.code = code()
                print(f"  {old.verdict}: {old.key} {sum(old.seconds.values()):.1f} s {old.why[:200]}", flush=True)
                if args.rows is not None:
                    with args.rows.open("a") as file:
                        file.write(json.dumps(asdict(old)) + "\n")
            rows.append(old)
    return shown(rows)


if __name__ == "__main__":
    sys.exit(main())
