"""Models larger than memory: Llama-3-8B and Falcon-7B by their shapes, with random weights in sharded safetensors.

    large.py MODEL FOLDER write|compile|block|first|all [--layers N] [--tokens N] [--effort WORD] [--memory-limit SIZE]

`write` puts the weights into FOLDER tensor by tensor (bfloat16, about 16 GB for all layers), `compile` makes the image
in Bfp8_b, `block` runs a model of four layers from its image and holds the logits against torch on the same weights,
`first` runs the whole image once, for its first token. Each prints seconds, bytes and the peak of memory, and is best
run in a process of its own. Needs transformers (extra `zoo`).
"""

import argparse
import json
import resource
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import buda_emu as be
from buda_emu.compiler.pipeline import Observer
from buda_emu.spec.formats import tile_bytes
from buda_emu.support.options import parse_size

SHARD = 4 << 30
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama-3-8b": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {
        "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 500000.0, "max_position_embeddings": 8192,
    }),
    "falcon-7b": (transformers.FalconConfig, transformers.FalconForCausalLM, {
        "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "multi_query": True, "parallel_attn": True, "bias": False, "new_decoder_architecture": False,
    }),
    "tiny": (transformers.LlamaConfig, transformers.LlamaForCausalLM, {
        "vocab_size": 4096, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 2,
        "num_attention_heads": 8, "num_key_value_heads": 2, "rope_theta": 500000.0,
    }),
}  # fmt: skip


class Logits(torch.nn.Module):
    """The model without its cache: the logits of a token as a column, as a row of 128,256 fits no row of cores."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Any) -> Any:
        """[1, tokens] to [1, vocabulary, tokens]."""
        return self.model(input_ids=ids, use_cache=False).logits.transpose(1, 2)


def without_data(name: str, layers: int | None, dtype: Any = torch.bfloat16) -> Any:
    """Return the module on the device meta, but for its rotary angles, which are in no file."""
    config_type, model_type, words = MODELS[name]
    config = config_type(**words, attn_implementation="sdpa")
    if layers is not None:
        config.num_hidden_layers = layers
    with torch.device("meta"):
        model = model_type(config).to(dtype).eval()
    for module in model.modules():
        if hasattr(module, "rotary_emb"):
            module.rotary_emb = type(module.rotary_emb)(config)
    return Logits(model)


Content = np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], np.random.Generator]
"""All numbers of a tensor, or some that the generator repeats in another order until the tensor is full."""


Shard = list[tuple[str, tuple[int, ...], Content]]
"""Name, shape and content of the tensors of one file."""


def random_tensors(module: Any) -> Iterator[tuple[str, tuple[int, ...], Content]]:
    """Yield name, shape and content (bfloat16 as uint16) of each tensor of a module once."""
    seen: set[int] = set()
    for number, (name, tensor) in enumerate(module.state_dict(keep_vars=True).items()):
        if id(tensor) in seen:
            continue
        seen.add(id(tensor))
        stream = np.random.default_rng(number)
        if tensor.ndim < 2:
            values = np.zeros(tensor.shape, np.float32) if name.endswith("bias") else np.ones(tensor.shape, np.float32)
            yield name, tuple(tensor.shape), _halves(values)
        else:
            part = stream.standard_normal(1 << 22, np.float32) * np.float32(tensor.shape[-1] ** -0.5)
            yield name, tuple(tensor.shape), (_halves(part), stream)


def _halves(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return float32 numbers as bfloat16, cut, in uint16."""
    return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)


def write(name: str, folder: Path, layers: int | None) -> None:
    """Write the weights in shards of about SHARD bytes, and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[Shard] = [[]]
    filled = 0
    for tensor, shape, content in random_tensors(without_data(name, layers)):
        size = 2 * prod(shape)
        if filled and filled + size > SHARD:
            shards.append([])
            filled = 0
        shards[-1].append((tensor, shape, content))
        filled += size
    places: dict[str, str] = {}
    for number, shard in enumerate(shards):
        file = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        _write_shard(folder / file, shard)
        places |= {tensor: file for tensor, _, _ in shard}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    print(f"wrote {sum(path.stat().st_size for path in folder.glob('*.safetensors')) / 1e9:.2f} GB")


def _write_shard(path: Path, shard: Shard) -> None:
    """Write one file of safetensors."""
    header: dict[str, Any] = {}
    offset = 0
    for tensor, shape, _ in shard:
        end = offset + 2 * prod(shape)
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for _, shape, content in shard:
            if not isinstance(content, tuple):
                stream.write(content.data)
                continue
            halves, source = content
            left = prod(shape)
            while left:  # the same numbers in another order: a stream of new ones takes most of an hour
                part = np.roll(halves, int(source.integers(halves.size)))[:left]
                stream.write(part.data)
                left -= part.size


def ids(name: str, tokens: int) -> Any:
    """Return random token numbers [1, tokens]."""
    vocabulary = MODELS[name][2]["vocab_size"]
    return torch.from_numpy(np.random.default_rng(1).integers(0, vocabulary, (1, tokens)))


def compile_image(name: str, folder: Path, layers: int | None, tokens: int, effort: str, limit: int | None) -> None:
    """Compile the model to an image, and print seconds, bytes and the peak of memory."""
    start = time.perf_counter()
    observer = Observer(foreseen=lambda words: print(words, flush=True))
    model = be.compile(
        without_data(name, layers),
        (ids(name, tokens),),
        parameters=folder,
        df="Bfp8_b",
        effort=effort,
        microbatch=1,
        name=name,
        observer=observer,
        memory_limit=limit,
    )
    placed = time.perf_counter()
    print({step: round(seconds, 1) for step, seconds in observer.seconds.items() if seconds > 0.5}, flush=True)
    print(f"placed after {placed - start:.0f} s: {model}, peak {peak():.2f} GiB", flush=True)
    _, image = model.save(folder, "image")
    queues = [model.netlist.queues[tensor] for tensor, _ in model.tensors()]
    format_bytes = sum(
        queue.entries * prod(queue.blocking.shape) * tile_bytes(queue.df, 32, 32, 1, header=False) for queue in queues
    )
    print(
        f"written after {time.perf_counter() - start:.0f} s, {image.stat().st_size / 1e9:.3f} GB, "
        f"{image.stat().st_size / format_bytes:.4f} times the bytes of its formats, peak {peak():.2f} GiB",
        flush=True,
    )


def run(name: str, folder: Path, tokens: int, limit: int | None) -> np.ndarray[Any, Any]:
    """Return the logits that the image computes in precision `ideal`."""
    start = time.perf_counter()
    image = be.load_image(folder / "image.tti")
    assert image.model is not None
    with image.emulator("ideal", memory_limit=limit) as machine:
        filled = time.perf_counter()
        for queue, array in image.model.queues({image.model.labels[0]: ids(name, tokens).numpy()}).items():
            machine.push(queue, array)
        machine.run("run_fwd_0", {"$p_loop_count": 1})
        output = image.model.outputs[0]
        logits = image.host_output(output.queue, machine.pop(output.queue))
        print(
            f"loaded in {filled - start:.1f} s, ran in {time.perf_counter() - filled:.0f} s, peak {peak():.2f} GiB, "
            f"{machine.memory}, token {int(logits[0, :, -1].argmax())}",
            flush=True,
        )
    return logits


def block(name: str, folder: Path, layers: int | None, tokens: int, limit: int | None) -> None:
    """Compare the logits of the image with torch's in float32 on the same weights."""
    from buda_emu.compiler.importers.from_torch.parameters import with_parameters

    logits = run(name, folder, tokens, limit)
    model = with_parameters(without_data(name, layers), folder).float()
    with torch.no_grad():
        expected = model(ids(name, tokens)).numpy()
    a = logits.astype(np.float64).ravel()
    b = expected.astype(np.float64).ravel()
    print(f"PCC of {b.size} logits {np.corrcoef(a, b)[0, 1]:.6f}, largest {np.abs(b).max():.3f}", flush=True)


def peak() -> float:
    """Return the most memory that this process held, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def main() -> None:
    """Do one step, or all but `first`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("step", choices=("write", "compile", "block", "first", "all"))
    parser.add_argument("--layers", type=int)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--effort", default="low")
    parser.add_argument("--memory-limit", type=parse_size)
    args = parser.parse_args()
    if args.step in ("write", "all"):
        write(args.model, args.folder, args.layers)
    if args.step in ("compile", "all"):
        compile_image(args.model, args.folder, args.layers, args.tokens, args.effort, args.memory_limit)
    if args.step in ("block", "all"):
        block(args.model, args.folder, args.layers, args.tokens, args.memory_limit)
    if args.step == "first":
        run(args.model, args.folder, args.tokens, args.memory_limit)


if __name__ == "__main__":
    main()
