"""torch.compile(backend="buda"): whatever a function changes, gives and shares, as without compiling it."""

import random

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")

from buda_emu.compiler.importers.from_torch.dynamo import buda  # noqa: E402 - it imports torch

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
OPTIONS = {"effort": "low"}


@pytest.fixture(autouse=True)
def _without_what_was_compiled():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled_by_buda(function, **words):
    return torch.compile(function, backend=buda, options=OPTIONS, **words)


def copied(items):
    """The same arguments in memory of their own, laid out alike."""
    made = []
    for item in items:
        if isinstance(item, torch.Tensor):
            tensor = torch.empty_strided(item.shape, item.stride(), dtype=item.dtype)
            places = tuple(slice(1) if step == 0 else slice(None) for step in item.stride())
            tensor[places].copy_(item.detach()[places])
            item = tensor.requires_grad_(item.requires_grad)
        made.append(item)
    return made


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def check_equal(got, want):
    if not isinstance(want, torch.Tensor):
        assert type(got) is type(want)
        assert got == want
        return
    assert (got.shape, got.dtype, got.requires_grad) == (want.shape, want.dtype, want.requires_grad)
    assert want.numel() == 0 or got.stride() == want.stride()
    tolerance = 2e-2 if want.dtype in (torch.bfloat16, torch.float16) else 1e-4
    np.testing.assert_allclose(
        *(item.detach().double().numpy() for item in (got, want)), rtol=tolerance, atol=tolerance
    )


def shared(results, arguments):
    """Which results share memory with which arguments and results, and which are the same tensor."""
    tensors = [item for item in (*arguments, *results) if isinstance(item, torch.Tensor) and item.numel()]
    places = [item.untyped_storage().data_ptr() for item in tensors]
    return [[(a == b, x is y) for b, y in zip(places, tensors, strict=True)]
            for a, x in zip(places, tensors, strict=True)]  # fmt: skip


def compare(function, *calls, **words):
    """Calls of a compiled function with eager ones: results, arguments afterwards, and who shares memory."""
    ours = compiled_by_buda(function, **words)
    for arguments in calls:
        left, right = copied(arguments), copied(arguments)
        want, got = as_list(function(*left)), as_list(ours(*right))
        assert len(got) == len(want)
        for a, b in zip([*got, *right], [*want, *left], strict=True):
            check_equal(a, b)
        assert shared(got, right) == shared(want, left)


def x(*shape):
    return torch.randn(*(shape or (4, 32)))


def write_cache(k, new):
    k[:, 3] = new
    return k.sum(-1)


def swap(a, b):
    old = a.clone()
    a.copy_(b)
    b.copy_(old)


def around_a_break(a):
    a.add_(1)
    torch._dynamo.graph_break()
    return a.mul_(2) + 1


def several_views(a):
    y = a + 1
    return y, y.t(), y[1], y


CASES = {
    "in place": (lambda a: (a.add_(1), a * 2)[1], [(x(),)]),
    "a cache": (write_cache, [(torch.zeros(2, 8, 32), torch.ones(2, 32))]),
    "a cache at an index": (
        lambda k, new, place: (k.index_copy_(1, place, new), k.sum(-1))[1],
        [(torch.zeros(2, 8, 32), x(2, 1, 32), torch.tensor([place])) for place in (3, 4)],
    ),
    "an argument returned": (lambda a: a.add_(1), [(x(),)]),
    "an argument as it is": (lambda a, b: (a, b + 1), [(x(), x())]),
    "views of an argument": (lambda a: (a.view(-1), a[1:], a.t(), a.detach()), [(x(),)]),
    "a view is changed": (lambda a: (a.t()[3].zero_(), a.sum())[1], [(x(),)]),
    "a view is changed and returned": (lambda a: a[1].mul_(2), [(x(),)]),
    "results share memory": (several_views, [(x(),)]),
    "expanded results": (lambda a: a.sum().expand(4), [(x(),)]),
    "transposed results": (lambda a: (a + 1).t(), [(x(),)]),
    "None and numbers": (lambda a: (a + 1, None, 3, 2.5, True), [(x(),)]),
    "integers and truths": (lambda a: (a.argmax(1), a > 0, a.long()), [(x(),)]),
    "indices": (lambda a: (*torch.topk(a, 3), *torch.sort(a), *a.max(1)), [(x(),)]),
    "types in turn": (
        lambda a: a * 2,
        [(x().to(kind),) for kind in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64)],
    ),
    "not contiguous": (lambda a, b: (a * 2, b.mul_(2))[0], [(x(32, 4).t(), x(32, 4).t())]),
    "expanded arguments": (lambda a: a * 2, [(x(1, 4).expand(3, 4),)]),
    "no elements": (lambda a, b, c: (a * 2, b.add_(1), torch.cat([a, c])), [(x(0, 4), x(0, 3), x(2, 4))]),
    "nothing but no elements": (lambda a: a * 2, [(x(0, 4),)]),
    "no dimensions": (lambda a, b: (a * 2, b.add_(1)), [(torch.tensor(3.0), torch.tensor(4))]),
    "batches in turn": (lambda a: torch.relu(a @ torch.ones(32, 8)), [(x(n, 32),) for n in (4, 3, 1, 4, 7)]),
    "batches into a sum": (lambda a, s: (s.add_(a.sum(0)), a * s)[1], [(x(n, 32), x(32)) for n in (4, 3, 1, 6)]),
    "sizes as results": (lambda a: (a * 2, a.shape[0] * 2), [(x(n, 32),) for n in (4, 3, 5)]),
    "numbers in turn": (lambda a, s: a * s, [(x(), s) for s in (2, 3, 4.5, 5.5)]),
    "an optional argument": (lambda a, b=None: a if b is None else a * b, [(x(), x(32)), (x(),)]),
    "two changed": (swap, [(x(), x())]),
    "across a break": (around_a_break, [(x(),)]),
    "masked": (lambda a: a.masked_fill_(a > 0, 0), [(x(),)]),
    "constants": (lambda a: (torch.arange(5), a.new_zeros(3)), [(x(),)]),
    "a place for the result": (lambda a, to: torch.add(a, 1, out=to), [(x(), x())]),
    "truths are changed": (lambda a: a.logical_not_(), [(torch.tensor([True, False]),)]),
    "gradients wanted": (
        lambda a: (a.detach() * 2, a * 2, a.view(-1), a.detach()),
        [(x().requires_grad_(),)],
    ),
    "gradients not wanted": (torch.no_grad()(lambda a, w: a.mul_(w)), [(x(), x(32).requires_grad_())]),
    "no dropout": (lambda a: torch.nn.functional.dropout(a, 0.0, True), [(x(),)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    function, calls = CASES[name]
    compare(function, *calls)


def test_sizes_that_are_open_from_the_first_call():
    compare(lambda a: a * a.shape[0], (x(4, 32),), (x(3, 32),), dynamic=True)


def test_inference_mode():
    with torch.inference_mode():
        compare(lambda a: (a.add_(1), a * 2)[1], (x(),))


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1, 32))

    def forward(self, a):
        self.n += 1
        return a + self.n


class Twice(Counter):
    """The buffer is changed by one graph and read by the next one."""

    def forward(self, a):
        self.n += a.mean()
        torch._dynamo.graph_break()
        return super().forward(a) * self.n


@pytest.mark.parametrize(
    "make",
    [Counter, Twice, lambda: torch.nn.BatchNorm1d(32), lambda: torch.nn.InstanceNorm1d(4, track_running_stats=True)],
)
def test_modules_that_change_buffers(make):
    eager, other = make(), make()
    ours = compiled_by_buda(other)
    for rows in (8, 8, 6, 8):
        a = torch.randn(rows, 4, 32) + 5 if isinstance(eager, torch.nn.InstanceNorm1d) else torch.randn(rows, 32) + 5
        with torch.no_grad():
            check_equal(ours(a), eager(a))
        for got, want in zip(other.buffers(), eager.buffers(), strict=True):
            check_equal(got, want)
    eager.eval()
    other.eval()
    with torch.no_grad():
        check_equal(ours(a), eager(a))


def test_parameters_that_change_between_calls():
    module = torch.nn.Linear(32, 4)
    ours = compiled_by_buda(module)
    with torch.no_grad():
        for _ in range(2):
            a = x()
            check_equal(ours(a), module(a))
            module.weight.mul_(2)


def test_a_model_of_indices_gives_integers():
    class Order(torch.nn.Module):
        def forward(self, a):
            return torch.topk(a, 3), torch.sort(a), a.min(1), a.sum()

    a = x()
    got = be.compile(Order(), (a,), effort="low")(a)
    want = [*torch.topk(a, 3), *torch.sort(a), *a.min(1), a.sum()]
    for ours, theirs in zip(got, want, strict=True):
        assert (ours.shape, str(ours.dtype)) == (theirs.shape, str(theirs.dtype).removeprefix("torch."))
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (lambda a: torch.nn.functional.dropout(a, 0.5, True), (x(),), "random"),
        (lambda a: a + torch.rand(4, 32), (x(),), "random numbers"),
        (lambda a: a + torch.normal(0.0, 1.0, (4, 32)), (x(),), "random"),
        (lambda a: a.view(torch.int32), (x(),), "memory of torch.float32 read as torch.int32"),
        (lambda a, w: a.mul_(w), (x(), x(32).requires_grad_()), "call the model under torch.no_grad"),
        (lambda a: torch.fft.fft(a), (x(),), "complex"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(function, arguments, said):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=f"UnsupportedError: .*{said}"):
        compiled_by_buda(function)(*arguments)


def test_arguments_that_share_memory_are_refused_where_one_is_changed():
    memory = x(8, 32)
    ours = compiled_by_buda(lambda a, b: (a.add_(1), b * 2)[1])
    with pytest.raises(be.UnsupportedError, match="two inputs share memory, and one of them is changed in place"):
        ours(memory, memory[1:])
    ours(x(8, 32), memory[1:])


def test_a_gradient_is_refused_and_not_left_out():
    w = x(32).requires_grad_()
    loss = compiled_by_buda(lambda a, w: (a * w).sum())(x(), w) + w.sum()
    with pytest.raises(be.UnsupportedError, match="no gradients flow through backend buda"):
        loss.backward()


# ----------------------------------------------------------------------------------- models that are compiled alone
class OfInput(torch.nn.Module):
    def forward(self, a):
        a.add_(1)
        return a * 2


class OfParameter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(32))

    def forward(self, a):
        with torch.no_grad():
            self.w.add_(1)
        return a * self.w


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Counter, r"buffer n \(call eval"),
        (lambda: torch.nn.BatchNorm1d(32), "buffer running_mean, running_var, num_batches_tracked"),
        (OfInput, r"input a \(change a clone of it"),
        (OfParameter, "parameter w"),
    ],
)
def test_a_model_that_changes_with_each_call_is_refused(make, said, tmp_path):
    module, a = make(), x()
    said = f"each call changes in place: {said}.*compile_programs keeps on the machine"
    with pytest.raises(be.UnsupportedError, match=said):
        be.compile(module, (a,), effort="low")
    program = torch.export.export(module, (a,))
    with pytest.raises(be.UnsupportedError, match=said):
        be.compile(program, effort="low")
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(be.UnsupportedError, match=said):
        be.compile(tmp_path / "m.pt2", effort="low")


def test_a_norm_in_evaluation_is_not_refused():
    module, a = torch.nn.BatchNorm1d(32).eval(), x()
    np.testing.assert_allclose(be.compile(module, (a,), effort="low")(a)[0], module(a).detach().numpy(), atol=1e-4)


# --------------------------------------------------------------------------------------------------- drawn programs
def drawn(rng):
    """A function of three tensors that changes them and views of them in place, as a list of steps, and its results."""
    views = ("{0}", "{0}[1]", "{0}[:, 2:5]", "{0}.t()", "{0}[::2]", "{0}.view(-1)[3:9]", "{0}.unsqueeze(0)")
    changes = ("{0}.add_({1})", "{0}.mul_(1.5)", "{0}.copy_({0} * {1})", "{0}.clamp_(min={1})", "{0}.neg_()",
               "{0}.masked_fill_({0} > {1}, 2.0)", "{0}.zero_()", "{0}.fill_({1})", "{0}.relu_()")  # fmt: skip
    gives = ("{0}", "{0} + 1", "{0}.sum()", "{0}.sum(0)", "{0}.argmax()", "{0} > 0", "{0}.max(-1)[1]", "{0}.clone()")
    names, lines = ["a", "b", "c"], []
    for number in range(rng.randint(2, 6)):
        source = rng.choice(names)
        view = rng.choice(views if source in "abc" else views[:1]).format(source)
        if rng.random() < 0.4:
            names.append(f"v{number}")
            lines.append(f"v{number} = {view}{' * 2' * (rng.random() < 0.3)}")
        else:
            amount = rng.choice(("1.0", "-0.5", "a.mean()", "b.sum()", "(c[0, 0] * 1)"))
            lines.append(rng.choice(changes).format(view, amount))
    results = [rng.choice(gives).format(rng.choice(names)) for _ in range(rng.randint(1, 3))]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def function(a, b, c):\n{body}    return {', '.join(results)},\n"


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 120))])
def test_drawn_programs(seed):
    rng = random.Random(seed)
    source = drawn(rng)
    room = {}
    exec(source, room)
    kinds = (torch.float32, torch.float64)  # of shorter ones, values between are not rounded as eagerly
    shapes = [(rng.choice((4, 6)), 8) for _ in range(2)]
    calls = [[(torch.randn(shape) * 2).to(kind) for kind in rng.choices(kinds, k=3)] for shape in (shapes[0], *shapes)]
    try:
        compare(room["function"], *calls)
    except AssertionError as error:
        raise AssertionError(source) from error


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_elements_that_are_not_changed_keep_their_bits(seed):
    """Whole numbers beyond 2^24 and digits that float32 does not have."""
    draw = random.Random(seed)
    place = draw.randrange(6)
    values = {
        torch.int64: [draw.randrange(2**24, 2**60) for _ in range(6)],
        torch.float64: [draw.choice((1 / 3, 1e200, -1e-200, 7.1)) for _ in range(6)],
    }

    def set_one(held):
        held[place] = 1
        return held.shape[0]

    for dtype, numbers in values.items():
        held = torch.tensor(numbers, dtype=dtype)
        expected = held.clone()
        set_one(expected)
        compiled_by_buda(set_one)(held)
        assert torch.equal(held, expected)


@pytest.mark.parametrize("number", [2**24 + 1, 2**63 - 1])
def test_integers_that_the_device_would_round_are_refused(number):
    """An input that is only read gives them to a result; one that is changed keeps them itself."""
    with pytest.raises(be.HostError, match=f"the integer {number} is not exact in float32"):
        compiled_by_buda(lambda x: x.flip(0))(torch.tensor([1, number]))
    held = torch.tensor([1, number])
    compiled_by_buda(lambda x: x[:1].add_(2).shape[0])(held)
    assert held.tolist() == [3, number]


def draw_writes(rng):
    """A function that writes 512 to some places of x, which views, indices, and masks name. What torch does not export
    is left out: views of the memory of what was written through its transpose, and index_fill_."""
    transposed = rng.random() < 0.5
    views = ("{0}", "{0}[1]", "{0}[:, 2:5]", "{0}[::2]", "{0}.chunk(2, 1)[1]",
             "{0}.t()" if transposed else "{0}.view(-1)[3:9]")  # fmt: skip
    changes = ("{0}.fill_(512.0)", "{0}[..., 1] = 512.0", "{0}[i] = 512.0", "{0}.masked_fill_({1}, 512.0)",
               "{0}.index_fill_(0, i, 512.0)", "{0}.index_put_((i,), torch.full((), 512.0, dtype=x.dtype))",
               "{0}[{1}] = 512.0", "{0}.copy_({0} * 0 + 512)")  # fmt: skip
    lines = []
    for _ in range(rng.randint(1, 3)):
        view = rng.choice(views)
        change = rng.choice([item for item in changes if not (transposed and "index_fill_" in item)])
        lines.append(f"    {change.format(view.format('x'), view.format('m'))}\n")
    return f"def function(x, m, i):\n{''.join(lines)}    return x.shape[0]\n"


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 120))])
def test_elements_that_are_not_written_keep_their_bits_in_any_format(seed):
    """512 is exact beside anything that there is, in block formats too; the others are not."""
    rng = random.Random(seed)
    source = draw_writes(rng)
    room = {"torch": torch}
    exec(source, room)
    dtype = rng.choice((torch.float32, torch.float64, torch.int64))
    x = (torch.randn(4, 8) * 8).to(dtype)
    x[torch.rand(4, 8) < 0.2] = -0.0
    arguments = [x, torch.rand(4, 8) < 0.3, torch.tensor(rng.choices((0, 1), k=2))]
    got, want = copied(arguments), copied(arguments)
    options = {"effort": "low", "df": rng.choice(("Bfp8_b", "Float16_b", "Float32"))}
    torch.compile(room["function"], backend=buda, options=options)(*got)
    room["function"](*want)
    for ours, theirs in zip(got, want, strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes(), (options, dtype, source)


def test_a_zero_of_the_other_sign_is_written():
    x, y = torch.tensor([0.0, -0.0, 0.0, -0.0]), torch.tensor([-0.0, 0.0, 0.0, -0.0])
    compiled_by_buda(lambda x, y: x.copy_(y).shape[0])(x, y)
    assert x.signbit().tolist() == y.signbit().tolist()


def test_zeros_of_both_signs_are_different_numbers():
    compiled = compiled_by_buda(lambda x, number: torch.full_like(x, number))
    x = torch.ones(3)
    for number in (0.5, 0.0, -0.0):
        assert torch.equal(compiled(x, number), torch.full_like(x, number))


def test_a_callback_sees_what_torch_compile_waits_for():
    seen = []
    compiled = torch.compile(lambda x: x + 1, backend=buda, options={**OPTIONS, "progress": seen.append})
    check_equal(compiled(torch.ones(2, 3)), torch.full((2, 3), 2.0))
    assert {"preparing", "passes"} <= {activity.stage for activity in seen}


@torch._dynamo.config.patch(allow_rnn=True)
def test_a_recurrent_module_is_compiled_where_torch_is_told_to_trace_it():
    torch.manual_seed(0)
    module = torch.nn.GRU(6, 8, batch_first=True).eval()
    fast = torch.compile(module, backend="buda", options={"effort": "low"}, fullgraph=True)
    with torch.no_grad():
        for batch in (2, 4, 2):
            x = torch.randn(batch, 3, 6)
            torch.testing.assert_close(fast(x)[0], module(x)[0], atol=1e-5, rtol=1e-4)
