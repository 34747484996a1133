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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
Candidate = tuple[Any, Check]
"""A compiled model, and a function that returns the least correlation of its values with the source's."""


@dataclass(slots=True)
class Row:
    """The result of one model compiled one way. `verdict` is `right`, or the name of the judge that is against it, with
    the reason in `why`."""

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
    """The identity of the code that was judged (`code`)."""

    @property
    def key(self) -> str:
        """The name of the row in a file of rows."""
        return f"{self.case} {self.arch} {self.words}"


def compile_module(build: Callable[[], small.Source], **words: Any) -> Candidate:
    """Compile a torch module."""
    module, inputs = build()
    with torch.no_grad():
        expected = module(*inputs)
    compiled = be.compile(module, inputs, **words)
    want = expected if isinstance(expected, tuple) else (expected,)
    return compiled, lambda: least(want, compiled(*inputs))


def least(expected: Sequence[Any], got: Sequence[Any]) -> float:
    """Return the least correlation of two lists of arrays. Arrays that are the same everywhere, as gradients behind a
    mean are, count 1 if they are equal to a thousandth."""
    return min(_similarity(np.asarray(want, np.float64), have) for want, have in zip(expected, got, strict=True))


def _similarity(want: Any, have: Any) -> float:
    """Return the correlation of an array with the expected one, or 1 or 0 if the expected one is constant."""
    scale = float(np.abs(want).max())
    if np.ptp(want) > 1e-3 * scale:
        return difference("", want, have).pcc or 0.0
    return float(np.abs(want - have).max() <= 1e-3 * scale)


def compile_onnx(build: Callable[[], small_onnx.Source], **words: Any) -> Candidate:
    """Compile an ONNX graph."""
    model, inputs = build()
    compiled = be.compile(model, inputs, **words)
    want = small_onnx.outputs(model, inputs)
    return compiled, lambda: least(want, compiled(*inputs))


def compile_qdq(build: Callable[[], small.Source], **words: Any) -> Candidate:
    """Compile a torch module as an ONNX graph in QDQ form; onnxruntime is the reference."""
    model, inputs = small_onnx.quantise(*build())
    compiled = be.compile(model, inputs, **words)
    want = small_onnx.outputs_of_onnxruntime(model, inputs)
    return compiled, lambda: least(want, compiled(*inputs))


def compile_training(build: Callable[[], small.Source], number: int, **words: Any) -> Candidate:
    """Compile a step of a training; its loss and its gradients are compared."""
    module, inputs = build()
    with torch.no_grad():
        target = torch.randn_like(module(*inputs))
    compiled = be.compile_training(module, inputs, loss="mse", optimizer=OPTIMIZERS[number % 3], target=target, **words)

    def check() -> float:
        loss = torch.nn.functional.mse_loss(module(*inputs), target)
        loss.backward()
        chip_loss = compiled.train_step(inputs, target)
        if abs(chip_loss - loss.item()) > 1e-3 * abs(loss.item()):
            return 0.0
        gradients = compiled.gradients()
        expected: dict[str, Any] = {}
        for name, parameter in module.named_parameters():
            if parameter.grad is not None:
                expected[name] = parameter.grad.numpy()
        scale = max(np.abs(gradient).max() for gradient in expected.values())
        names = [
            name for name, gradient in expected.items() if np.abs(gradient).max() > 1e-4 * scale and gradient.size > 1
        ]
        return least([expected[name] for name in names], [gradients[name] for name in names])

    return compiled, check


def compile_decoder(width: int, heads: int, layers: int, **words: Any) -> Candidate:
    """Compile a decoder with caches; the share of tokens equal to torch's is the result."""
    torch.manual_seed(width)
    model = sharpen(GPT(tokens=150, width=width, heads=heads, layers=layers, length=64))
    compiled = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()), **words)
    prompt = torch.randint(0, 150, (5,)).tolist()
    return compiled, lambda: equal_share(model.greedy(prompt, 30), compiled.generate(prompt, 30))


def compile_packaged_decoder(name: str, **words: Any) -> Candidate:
    """Compile a decoder of transformers, whose keys and values lie in its own class of caches."""
    torch.manual_seed(sum(map(ord, name)))
    model = sharpen(of_transformers.Windows(*of_transformers.TRANSFORMERS[name][:3]))
    compiled = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()), **words)
    prompt = torch.randint(3, 200, (5,)).tolist()
    return compiled, lambda: equal_share(model.greedy(prompt, 30), compiled.generate(prompt, 30))


def compile_encoder_and_decoder(width: int, heads: int, layers: int, **words: Any) -> Candidate:
    """Compile an encoder and a decoder as two programs of one netlist."""
    torch.manual_seed(width)
    model = sharpen(T5(tokens=150, width=width, heads=heads, layers=layers, source=32, length=64))
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
        return equal_share(model.greedy(source, [0], 20), compiled.generate([0], 20, program="decode"))

    return compiled, check


def sharpen(module: Any) -> Any:
    """Make the weights of a module larger, so that the likeliest token is not a close call between equals."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    return module.eval()


def equal_share(expected: Sequence[int], got: Sequence[int]) -> float:
    """Return the share of equal tokens."""
    return float(np.mean(np.asarray(expected) == np.asarray(got)))


def cases(*, packaged: bool = True) -> dict[str, Callable[..., Candidate]]:
    """Return all cases by name, with or without the models of installed packages."""
    packages = of_packages.models() if packaged else {}
    compilations: dict[str, Callable[..., Candidate]] = {}
    for name, build in small.MODELS.items():
        compilations[f"torch.{name}"] = partial(compile_module, build)
    for name, build in packages.items():
        compilations[name] = partial(compile_module, build)
    for name, build in small_onnx.MODELS.items():
        compilations[f"onnx.{name}"] = partial(compile_onnx, build)
    for name, build in [*_choose(small.MODELS, QUANTISED), *_choose(packages, PACKAGED_QUANTISED)]:
        compilations[f"int8.{name}"] = partial(compile_qdq, build)
    compilations |= _packaged_decoders(packages)
    trained = [*_choose(small.MODELS, TRAINED), *_choose(packages, PACKAGED_TRAINED)]
    for number, (name, build) in enumerate(trained):
        compilations[f"train.{name}"] = partial(compile_training, build, number)
    for width, heads, layers in ((48, 3, 1), (64, 2, 2), (96, 6, 3)):
        compilations[f"generate.gpt{width}"] = partial(compile_decoder, width, heads, layers)
        compilations[f"generate.t5_{width}"] = partial(compile_encoder_and_decoder, width, heads, layers)
    return compilations


def _packaged_decoders(packages: Iterable[str]) -> dict[str, Callable[..., Candidate]]:
    """Return the cases of transformers that generate text, if models of transformers are among the packages'."""
    if not any(name.startswith("transformers.") for name in packages):
        return {}
    return {f"generate.{name}": partial(compile_packaged_decoder, name) for name in of_transformers.GENERATING}


def _choose(
    models: Mapping[str, Callable[[], small.Source]], names: Iterable[str]
) -> list[tuple[str, Callable[[], small.Source]]]:
    """Return the models of these names that there are, in the order of the names."""
    return [(name, models[name]) for name in names if name in models]


def settings(case: str, arch: str, number: int) -> dict[str, Any]:
    """Return the options that a case is compiled with; trainings, generations and grayskull take one chip."""
    words = dict(SETTINGS[number % len(SETTINGS)])
    if case.startswith(("train.", "generate.")):
        words.pop("microbatch", None)
    if arch == "grayskull" or case.startswith(("train.", "generate.")):
        words.pop("chips", None)
    return words


def judge(row: Row, build: Callable[..., Candidate], folder: Path) -> Row:
    """Compile one case and ask all judges; the first that is against it gives the row its verdict."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled, check = _time(row, "compile", lambda: build(arch=row.arch, **row.words))
            row.ops = len(compiled.placement.ops)
            row.epochs = compiled.placement.epochs
            if findings := _time(row, "check", lambda: compiled.check(strict=True)):
                return _reject(row, "strict", f"{len(findings)}: {findings[0]}")
            if vendor_router.AVAILABLE:
                chips = int(row.words.get("chips", 1))
                refusal = _time(
                    row, "vendor", lambda: vendor_router.refusal(compiled.text, row.arch, folder, chips=chips)
                )
                if refusal:
                    (folder.parent / f"{row.case}-{row.arch}.yaml").write_text(compiled.text)
                    return _reject(row, "vendor", refusal)
            row.pcc = _time(row, "run", check)
            if not row.pcc >= PCC:
                return _reject(row, "values", f"PCC {row.pcc:.6f}")
    except (be.UnsupportedError, be.HostError) as error:
        return _reject(row, "refused", str(error))
    except Exception as error:  # noqa: BLE001 - what is wrong with one case must not hide the others
        return _reject(row, "error", f"{type(error).__name__}: {error}")
    return row


def _reject(row: Row, verdict: str, why: str) -> Row:
    """Set verdict and reason of a row, and return it."""
    row.verdict = verdict
    row.why = why[:1000]
    return row


def _time(row: Row, stage: str, work: Callable[[], Any]) -> Any:
    """Return the result of some work, and add its seconds to the row."""
    start = time.perf_counter()
    processor = time.process_time()
    try:
        return work()
    finally:
        row.seconds[stage] = round(time.perf_counter() - start, 2)
        row.processor[stage] = round(time.process_time() - processor, 2)


def read_rows(path: Path | None) -> dict[str, Row]:
    """Return the rows of an earlier run of this very code; rows of other code do not count. Ends the program at a line
    that is no row."""
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
    """Return the identity of the code that is judged and of the models that judge it."""
    models = sorted(Path(__file__).parent.glob("zoo/*.py"))
    return digest((code_identity(), torch.__version__, [file_digest(path) for path in (*models, Path(__file__))]))


def report(rows: Sequence[Row]) -> int:
    """Print the rows that are not right, and the sums. Return the exit status."""
    wrong = [row for row in rows if row.verdict != "right"]
    for row in wrong:
        print(f"{row.verdict}: {row.key}: {row.why[:400]}")
    seconds: Counter[str] = Counter()
    for row in rows:
        seconds.update(row.seconds)
    print(", ".join(f"{count} {verdict}" for verdict, count in Counter(row.verdict for row in rows).most_common()))
    print("seconds: " + ", ".join(f"{stage} {value:.0f}" for stage, value in seconds.items()))
    return 1 if wrong else 0


def plan_rows(args: argparse.Namespace) -> Iterator[Row]:
    """Yield empty rows for the cases to judge: models in turn, each with another setting, round by round, or a
    sample."""
    if args.sample:
        yield from _sample(args)
        return
    for turn in args.settings or range(args.rounds):
        for number, name in enumerate(cases()):
            if not _is_chosen(name, args.only):
                continue
            for arch in args.archs:
                setting = turn
                if not args.settings:
                    setting = number + 3 * ARCHS.index(arch) + turn
                yield Row(name, arch, settings(name, arch, setting))


def _sample(args: argparse.Namespace) -> Iterator[Row]:
    """Yield empty rows for random cases, architectures and settings."""
    generator = random.Random(args.seed)
    names = [name for name in cases() if _is_chosen(name, args.only)]
    for _ in range(args.sample):
        name = generator.choice(names)
        arch = generator.choice(args.archs)
        number = generator.randrange(len(SETTINGS))
        yield Row(name, arch, settings(name, arch, number))


def _is_chosen(name: str, words: Sequence[str]) -> bool:
    """Return whether the name of a case has one of the words of `--only` in it, if there are any."""
    return not words or any(word in name for word in words)


def main() -> int:
    """Judge all cases that have no row yet, and print the result."""
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
    earlier = read_rows(args.rows)
    rows = []
    names = cases()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (args.rows.parent / "refused" if args.rows is not None else Path(scratch)) / "now"
        for row in plan_rows(args):
            judged_row = earlier.get(row.key)
            if judged_row is None or (args.again and judged_row.verdict != "right"):
                judged_row = earlier[row.key] = judge(row, names[row.case], folder)
                judged_row.code = code()
                seconds = sum(judged_row.seconds.values())
                print(f"  {judged_row.verdict}: {judged_row.key} {seconds:.1f} s {judged_row.why[:200]}", flush=True)
                if args.rows is not None:
                    with args.rows.open("a") as file:
                        file.write(json.dumps(asdict(judged_row)) + "\n")
            rows.append(judged_row)
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
