"""Caches that stay on the machine, and greedy decoding against torch's."""

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import made_up
from buda_emu.compiler.place.cost import tiles_read
from buda_emu.compiler.place.rows import stream_rows
from buda_emu.compiler.search import cuts, refine
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.starts import searched_decisions
from buda_emu.compiler.target import L1_RESERVED, ONE_BY_ONE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    """A module of the folder examples."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def sharpened(module):
    """With larger weights, so that the likeliest token is not a close call."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    return module.eval()


class Mean(torch.nn.Module):
    """What it has seen so far, forgotten by halves."""

    def forward(self, x, seen):
        seen = 0.5 * seen + x
        return 2 * seen, seen


def test_an_output_of_a_caches_shape_replaces_it():
    first = torch.full((3, 40), 8.0)
    m = be.compile_programs(be.Program(Mean(), (torch.zeros(3, 40), first), keeps={1: "seen"}))
    assert m.check(strict=True) == ()
    x = np.arange(120, dtype=np.float32).reshape(3, 40)
    (once,), (twice,) = m(x), m(x)
    np.testing.assert_allclose(once, 2 * (x + 4), rtol=1e-6)
    np.testing.assert_allclose(twice, once / 2 + 2 * x, rtol=1e-6)
    np.testing.assert_allclose(m.caches()["seen"], twice / 2, rtol=1e-6)
    m.reset()
    np.testing.assert_array_equal(m(x)[0], once)


class Product(torch.nn.Module):
    """A sum over time, and one of its products."""

    def forward(self, x, S):  # noqa: N803 - torch writes the name small
        new = S + x.T @ x
        return x @ new, new


def test_a_cache_has_the_name_of_the_modules_argument_capitals_too():
    m = be.compile_programs(be.Program(Product(), (torch.zeros(2, 5), torch.zeros(5, 5)), keeps={1: "S"}), effort="low")
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    m(x)
    np.testing.assert_allclose(m(x)[0], 2 * x @ x.T @ x, rtol=1e-6)
    assert list(m.caches()) == ["S"]


def decoder(layers, width):
    """With caches of four windows."""
    torch.manual_seed(0)
    model = example("gpt").GPT(96, width, 2, layers, 128).eval()
    return be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))


@pytest.mark.parametrize(("layers", "width"), [(1, 64), pytest.param(2, 128, marks=pytest.mark.slow)])
def test_decoder_layers_that_fit_are_an_epoch_each_and_quicker_than_with_free_loads(layers, width, monkeypatch):
    m = decoder(layers, width)
    assert m.check(strict=True) == ()
    placement = m.placement
    assert placement.epochs <= layers
    for store in placement.tiles.stores.values():  # a buffer for each column of the op that writes the cache
        channels = [channel for channel, _ in placement.queues[store.queue].addresses]
        assert len(channels) == placement.ops[store.op].blocks.grid[1]
        assert len(set(channels)) > 1
    monkeypatch.setattr(cuts, "epoch_load", lambda _: (0.0, 0.0))
    free = refine.FULL
    monkeypatch.setattr(
        refine, "single_input_decisions", lambda table, *_: [searched_decisions(table, ONE_BY_ONE, free)]
    )
    assert m.perf().inputs_per_second > 1.01 * decoder(layers, width).perf().inputs_per_second


def test_what_an_op_reads_of_caches_is_there_when_it_begins(tmp_path):
    model = example("gpt").GPT(96, 256, 8, 1, 128).eval()
    m = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    tiles = m.placement.tiles
    read = [
        (use.buffer, tiles_read(tiles, placed.op, placed.blocks, number))
        for placed in m.placement.ops.values()
        for number, use in enumerate(placed.op.uses)
        if use.source in tiles.states and placed.blocks.t * prod(placed.blocks.mblock) > 2
    ]
    assert read
    assert all(buffer == tiles for buffer, tiles in read), read
    without = re.sub(r"input_buf_min_size_tiles: [[0-9, ]*[]], ", "", m.text)
    assert without != m.text
    for number, text in enumerate((m.text, without)):
        (tmp_path / f"{number}.yaml").write_text(text)
    with_room, plain = (be.perf(tmp_path / f"{number}.yaml").cycles for number in range(2))
    assert with_room <= plain


def test_no_op_moves_a_cache_whose_slots_and_heads_are_whole_tiles():
    m = decoder(1, 64)
    ops, stores = m.placement.ops, m.placement.tiles.stores.values()
    assert not any(one.op.attrs.get("identity") for one in ops.values())
    caches = {state.queue for state in m.placement.tiles.states.values()}
    ways = [use.tms for one in ops.values() for use in one.op.uses if use.source in caches]
    assert len(ways) == len(caches) == 2
    assert all(tms[:2] == (("vstack", 4), ("hslice", 2)) for tms in ways)
    order = list(ops)
    for store in stores:  # the product itself, once nothing reads the cache any more
        readers = [name for name, one in ops.items() if any(use.source == store.queue for use in one.op.uses)]
        if any(use.source == ops[store.op].op.uses[0].source for name in readers for use in ops[name].op.uses):
            assert ops[store.op].op.type == "nop"  # values: one op reads the cache and them
        else:
            assert ops[store.op].op.type == "matmul"
            assert max(map(order.index, readers)) < order.index(store.op)
    assert m.placement.queues["output"].loc == "dram"


def test_an_op_that_writes_a_cache_stays_whole_where_others_run_in_slices():
    m = be.compile_programs(be.Program(Mean(), (torch.zeros(256, 40), torch.zeros(256, 40)), keeps={1: "seen"}))
    tiles = m.placement.given
    arch = m.placement.target.arch
    small = replace(m.placement.target, arch=replace(arch, grid=(1, 1), l1_bytes=L1_RESERVED + (32 << 10)))
    cut = stream_rows(tiles, small)
    assert any(op.shape[0] > 1 for op in cut.ops.values())
    for store in cut.stores.values():
        assert cut.ops[store.op].shape == cut.states[store.queue].shape


class Looked(torch.nn.Module):
    """A large table that little is read of, and products by all of their weights, with a cache."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(20000, 384)
        self.layers = torch.nn.Sequential(torch.nn.Linear(384, 1536), torch.nn.ReLU(), torch.nn.Linear(1536, 384))

    def forward(self, tokens, seen):
        y = self.layers(self.table(tokens)) + seen
        return y, y


def test_parameters_that_stay_in_l1_are_loaded_from_all_channels_alike():
    torch.manual_seed(0)
    m = be.compile_programs(
        be.Program(Looked().eval(), (torch.zeros(32, dtype=torch.int64), torch.zeros(32, 384)), keeps={1: "seen"})
    )
    for epoch in evaluate(m.placement).run.epochs:
        loads = [0] * m.placement.target.arch.dram_channels
        largest = 0
        for edge in epoch.edges:
            for channel, size in edge.memory_bytes.items() if edge.once else ():
                loads[channel] += size
                largest = max(largest, size)
        assert max(loads) - min(loads) <= largest


def test_a_gpt_generates_what_torch_does():
    gpt = example("gpt")
    torch.manual_seed(0)
    model = sharpened(gpt.GPT(61, 48, 3, 2, 96))
    m = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    assert m.check(strict=True) == ()
    prompt = [3, 1, 4, 1, 5, 9, 2, 6] * 5
    expected = model.greedy(prompt, 50)
    assert m.generate(prompt, 50) == expected
    m.reset()
    assert m.generate(prompt, 50, stop=expected[3]) == expected[: 1 + expected.index(expected[3])]
    assert m.perf().cycles > 0


def test_the_windows_of_a_prompt_are_one_run():
    gpt = example("gpt")
    torch.manual_seed(1)
    model = sharpened(gpt.GPT(40, 32, 2, 1, 96))
    m = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    tokens = torch.randint(0, 40, (1, 96))
    with torch.no_grad():
        expected = model(tokens, torch.arange(96)[None])[0].numpy()
    rounds = [(tokens[:, at : at + 32], torch.arange(at, at + 32)[None]) for at in (0, 32, 64)]
    found = [scores[0] for (scores,) in m.rounds(rounds)]
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-3, atol=1e-4)
    (again,) = m(*rounds[2], write_index=2)
    np.testing.assert_array_equal(again[0], found[2])


def test_a_t5_generates_what_torch_does():
    t5 = example("t5")
    torch.manual_seed(0)
    model = sharpened(t5.T5(50, 32, 2, 1, 20, 64))
    encode, decode = t5.Encode(model).eval(), t5.Decode(model).eval()
    m = be.compile_programs(
        {
            "encode": be.Program(encode, encode.example(), encode.keeps()),
            "decode": be.Program(decode, decode.example(), decode.keeps()),
        }
    )
    assert m.check(strict=True) == ()
    source = list(range(20))
    m(np.asarray([source]), program="encode")
    assert m.generate([0], 40, program="decode") == model.greedy(source, [0], 40)


class Appended(torch.nn.Module):
    """Keeps any part of its input."""

    def __init__(self, kept):
        super().__init__()
        self.kept = kept

    def forward(self, x, cache):
        return x + cache.sum(), x[:, : self.kept] * 2


@pytest.mark.parametrize(
    ("kept", "keeps", "complaint"),
    [
        (3, {1: "cache"}, r"cache cache is \[2, 8\]; the part to keep, \[2, 3\], is not part of it"),
        (4, {2: "cache"}, "has no output 2"),
        (4, {0: "cache", 1: "cache"}, "cache is written twice"),
        (4, {1: 2}, "keeps of model is {1: 2}; it says by numbers of outputs"),
        (4, ["cache"], r"keeps of model is \['cache'\]; it says"),
        (
            4,
            {1: "cach"},
            r"keeps output 1 in cach, and no input is called that, did you mean 'cache'\? \(inputs of model:",
        ),
    ],
)
def test_what_does_not_fit_a_cache_is_refused(kept, keeps, complaint):
    with pytest.raises(be.HostError, match=complaint):
        be.compile_programs(be.Program(Appended(kept), (torch.ones(2, 8), torch.zeros(2, 8)), keeps=keeps))


def test_rounds_are_within_slots_and_queues():
    m = be.compile_programs(be.Program(Appended(4), (torch.ones(2, 8), torch.zeros(2, 8)), keeps={1: "cache"}))
    x = np.ones((2, 8), np.float32)
    with pytest.raises(be.HostError, match="write_index 2 for 1 round; its caches have 2 slots"):
        m(x, write_index=2)
    with pytest.raises(be.HostError, match="9 rounds in one run"):
        m.rounds([(x,)] * 9)
    with pytest.raises(be.HostError, match="program 'x' is not one of: model"):
        m(x, program="x")
    with pytest.raises(be.HostError, match="2 inputs, model takes 1: x"):
        m(x, x)
    with pytest.raises(be.HostError, match="not tokens"):
        m.generate([1], 1)
    np.testing.assert_allclose(m(x)[0], 1.0)
    np.testing.assert_allclose(m(x, write_index=1)[0], 17.0)


class Picked(torch.nn.Module):
    """Elements by indices, of which -100 stands for the first."""

    def forward(self, x, index):
        return torch.gather(x, 1, torch.where(index != -100, index, 0))


def test_programs_refuse_indices_outside_of_their_dimension():
    index = torch.zeros((2, 1), dtype=torch.int64)
    m = be.compile_programs(be.Program(Picked(), (torch.rand(2, 3), index), keeps={}), effort="low")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(m(x, np.array([[2], [-100]]))[0], [[2], [3]])
    with pytest.raises(be.HostError, match="index 7: the model takes indices from 0 to 2, and -100 for none"):
        m(x, np.array([[7], [0]]))


def test_generated_indices_are_within_a_dimension_of_one():
    index = torch.zeros((2, 16), dtype=torch.int64)
    m = be.compile(Picked(), (torch.rand(2, 1), index), effort="low")
    assert [entry.below for entry in m.io.inputs if entry.label == "index"] == [1]
    m(*made_up(m.graph))


@pytest.mark.slow
def test_gpt2_small_and_t5_small_generate_what_torch_does(root, child_environment):
    command = [sys.executable, root / "benchmarks" / "generating.py"]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True)
    for name in ("gpt2", "t5"):
        assert f"{name}: 50 of 50 tokens equal to torch's in precision ideal" in done.stdout
