"""Operators of torch that become several front-end ops, against torch."""

import random

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.importers.operators import OpenSizes
from buda_emu.compiler.parted import evaluate
from buda_emu.support.errors import HostError, UnsupportedError

torch = pytest.importorskip("torch")
from buda_emu.compiler.importers.from_torch.declared import ATEN  # noqa: E402 - only where torch is
from buda_emu.compiler.importers.from_torch.reader import read_torch  # noqa: E402 - only where torch is

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
F = torch.nn.functional


class Small(torch.nn.Module):
    """One function."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, *items):
        return self.run(*items)


def tensors(result):
    """All of a result, in order."""
    return [result] if isinstance(result, torch.Tensor) else [part for item in result for part in tensors(item)]


def agrees(module, *inputs):
    module = module.eval() if isinstance(module, torch.nn.Module) else Small(module)
    with torch.no_grad():
        expected = tensors(module(*inputs))
    compiled = be.compile(module, inputs)
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(*inputs), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-3, atol=2e-4)
    compiled.close()


torch.manual_seed(3)
X, IMAGE, PAIR = torch.randn(2, 7, 33), torch.randn(2, 3, 8, 10), torch.randn(5, 7)
WORDS = torch.randint(0, 20, (3, 5))


def test_images_and_bags():
    circular = torch.nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular").eval()
    sizes = [torch.nn.AdaptiveMaxPool2d(size) for size in ((3, 4), (10, 3))]
    bags = [torch.nn.EmbeddingBag(20, 6, mode=mode).eval() for mode in ("sum", "mean", "max")]

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.circular, self.bags = circular, torch.nn.ModuleList(bags)

        def forward(self, image, words):
            return [self.circular(image), *(size(image) for size in sizes), *(bag(words) for bag in self.bags)]

    agrees(Several(), IMAGE, WORDS)


@pytest.mark.parametrize("counts", [(20, 100), (100, 20), (20, 200, 100)])
def test_a_table_that_is_read_by_several_numbers_of_rows(counts):
    """The vendor's router cuts its queue as the first reader takes it."""

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(20, 7)

        def forward(self, words):
            return [self.table(words[:, :count]) for count in counts]

    agrees(Several(), torch.randint(0, 20, (1, 200)))


def test_distances_pairs_and_one_hot():
    norms = [0.0, 1.0, 2.0, 3.0, float("inf")]
    bilinear = torch.nn.Bilinear(7, 7, 6).eval()

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bilinear = bilinear

        def forward(self, a, words):
            distances = [torch.cdist(a, a[:3] + 1, p=p) for p in norms]
            return [*distances, torch.pdist(a), self.bilinear(a, a + 1), F.one_hot(words, 20).float()]

    agrees(Several(), PAIR, WORDS)


def test_order_and_places():
    def run(x):
        several = [
            torch.topk(x, 3),
            torch.topk(x, 4, dim=1, largest=False),
            torch.sort(x, dim=1, descending=True),
            torch.argsort(x, dim=1),
            x.median(1),
            x.kthvalue(3, 1, keepdim=True),
        ]
        beside = x[:, torch.tensor([0, 6, 2]), torch.tensor([32, -1, 5])]
        filled = x.index_fill(1, torch.tensor([1, 3]), 0.5)
        return several, x.cumprod(1), filled, beside, F.fold(x[:, :4, :12], (4, 5), 2)

    agrees(run, X)


def test_indices_that_are_computed():
    """The last of several values for one place counts, as on torch's CPU."""

    def run(x, words, values):
        place = words.argmax(1)  # [3]
        end = x[torch.arange(3), place]
        apart = x[place % 3, :, words[:, 0] - 20]
        both = x[place[:, None] % 3, words[:, :2] % 5]
        put = x[0].index_put((words[:, 0] % 5,), values)
        held = x.scatter(1, words[:, :3, None].expand(3, 3, 20) % 5, 7.0), x[0].scatter(-1, words.new_ones(5, 1), 2.0)
        added = x[0].index_put((words[:, 0] % 5, place), values[:, 0], accumulate=True)
        return end, apart, both, put, added, *held

    words = WORDS.clone()
    words[:2, 0] = 7
    agrees(run, torch.randn(3, 5, 20), words, torch.randn(3, 20))


def test_several_values_are_scattered_and_the_last_for_a_place_counts():
    """As on torch's CPU."""

    def run(x, index):
        values, places = torch.topk(x, 2, dim=1)
        best = torch.full_like(x, float("-inf")).scatter(1, places, values)
        rows = x.scatter(0, index % 2, x * 3)  # more than one for most places
        return torch.sigmoid(best), rows, x.scatter(-1, index[:, :3], x), x.scatter_add(1, index, x)

    agrees(run, torch.randn(5, 7), torch.randint(0, 7, (5, 7)))


def test_one_value_is_written_wherever_a_mask_is_set():
    def run(x):
        whole, rows, inner = x.clone(), x.clone(), x.clone()
        whole[x > 0.5] = -1.0
        rows[x[:, 0, 0] > 0] = x[1] * 2  # the same for all rows
        inner[:, x[0, :, 0] > 0] = 3.0
        return whole, rows, inner, x.index_put((x > 0,), torch.ones(1), accumulate=True)

    def several(x):
        x = x.clone()
        x[:, x[0] > 0] = torch.arange(7.0)
        return x

    agrees(run, X)
    with pytest.raises(be.UnsupportedError, match="a mask as index, with values that differ from place to place"):
        be.compile(Small(several), (X[0, :, :7],))


def test_images_are_sampled_at_computed_places():
    def run(x, grid, wide, places):
        several = [
            F.grid_sample(x, grid * 1.2, mode=mode, padding_mode=padding, align_corners=align)
            for mode, padding, align in (
                ("bilinear", "zeros", False),
                ("bilinear", "border", True),
                ("nearest", "zeros", True),
                ("nearest", "border", False),
            )
        ]
        return [*several, F.grid_sample(wide, places, align_corners=False)]

    grid, places = torch.rand(2, 4, 5, 2) * 2 - 1, torch.rand(1, 2, 3, 2, 3) * 2 - 1
    agrees(run, IMAGE, grid, torch.randn(1, 2, 3, 4, 5), places)
    with pytest.raises(be.UnsupportedError, match=r"grid_sampler_2d\.default \(bicubic\): 1 time"):
        be.compile(Small(lambda x, g: F.grid_sample(x, g, mode="bicubic", align_corners=True)), (IMAGE, grid))


def test_values_are_put_where_a_mask_is_set_one_after_the_other():
    """As the images of a model that sees take the places of their tokens."""

    def run(words, table, seen, more):
        x = table[words]  # [3, 5, 6]
        mask = (words == 7).unsqueeze(-1)
        put, columns = x.clone(), x.clone()
        put[words == 7] = seen[:3]
        columns[words == 7] = seen[:3, :1]
        found = x.masked_scatter(mask.expand_as(x), seen), x.masked_scatter(mask, seen), x.masked_scatter(x > 0, more)
        return *found, put, columns

    words = WORDS.clone()
    words[0, 1:3], words[2, 4] = 7, 7
    agrees(run, words, torch.randn(20, 6), torch.randn(7, 6), torch.randn(90))


def test_constants_that_no_machine_should_hold_are_refused_before_they_are_made():
    with pytest.raises(be.UnsupportedError, match=r"full\.default of constants, of shape \[32768, 32768\]: more than"):
        be.compile(Small(lambda x: x + torch.ones(1 << 15, 1 << 15).sum()), (PAIR,))


def test_random_numbers_are_refused():
    with pytest.raises(be.UnsupportedError, match=r"rand\.default \(random numbers: give them as an input\): 1 time"):
        be.compile(Small(lambda x: x + torch.rand(7)), (PAIR,))


def test_routing_to_experts():
    """The product of each group of rows with a matrix of its own, the groups counted as routers do."""

    def run(x, logits, weights):
        chosen, order = torch.sort(torch.topk(logits, 2).indices.flatten())
        counts = torch.histc(chosen.float(), bins=4, min=0, max=3)
        ends = counts.cumsum(0).to(torch.int32)
        found = torch._grouped_mm(x[order // 2].bfloat16(), weights.bfloat16(), offs=ends)  # torch takes no float32
        return torch.zeros_like(found).index_put((order,), found).reshape(6, 2, 16).float().sum(1), counts

    rows, weights = (torch.randint(-3, 4, size).float() for size in ((6, 8), (4, 8, 16)))
    agrees(run, rows, torch.randn(6, 4), weights)
    agrees(lambda x: torch.histc(x, bins=5, min=-1, max=1.5), X)


def test_complex_numbers():
    """Fourier transforms of odd and even sizes, both ways, and angles that are multiplied."""
    turn = torch.polar(torch.ones(7, 6), torch.randn(7, 6))

    def run(x):
        whole = torch.fft.fftn(x, dim=(1, 2), norm="ortho")
        half = torch.fft.rfft2(x[..., :12])
        filtered = torch.fft.irfft2(half * half.conj(), s=(7, 12))
        odd = torch.fft.irfft(torch.fft.rfft(x[0, 0], norm="forward") * 2, n=33)
        angles = torch.view_as_real(torch.view_as_complex(x[..., :12].reshape(2, 7, 6, 2).contiguous()) * turn)
        back = torch.fft.ifft(torch.fft.fft(x, dim=1)[:, 1:4], dim=1, norm="ortho")
        return whole.real, whole.imag, filtered, odd, angles, back.real

    agrees(run, X / 4)


def test_complex_outputs_are_refused():
    with pytest.raises(be.UnsupportedError, match=r"output 0 is complex: give its torch\.view_as_real"):
        be.compile(Small(lambda x: torch.fft.fft(x)), (X,))
    with pytest.raises(be.UnsupportedError, match=r"exp\.default \(of complex numbers\): 1 time"):
        be.compile(Small(lambda x: torch.fft.fft(x).exp().real), (X,))


def test_memory_that_nobody_wrote_is_zeros_until_it_is():
    """As code does it that joins parts by writing them into a new tensor; what lies in there may be NaN."""

    def run(x):
        joined = x.new_empty(2, 7, 40)
        joined[..., :33] = x
        joined[..., 33:] = x[..., :7]
        return joined

    torch.use_deterministic_algorithms(True)  # fills such memory with NaN
    try:
        agrees(run, X)
    finally:
        torch.use_deterministic_algorithms(False)


def test_recurrent_layers():
    agrees(torch.nn.GRU(33, 6, batch_first=True), X[:, :3])


@pytest.mark.parametrize("right", [False, True])
def test_edges_that_are_reached(right):
    edges, x = torch.tensor([[-1.0, 0.0, 0.0, 2.0], [-3.0, -1.0, 1.0, 1.0]]), torch.randint(-4, 4, (2, 9)).float()
    agrees(lambda x, edges: (torch.bucketize(x, edges[0], right=right), torch.searchsorted(edges, x, right=right),
                             torch.bucketize(0.0, edges[0], right=right),
                             torch.searchsorted(edges[1], x[0], side="right" if right else "left"),
                             torch.bucketize(x[0], torch.arange(-2.0, 3.0), out_int32=True, right=right)),
           x, edges)  # fmt: skip


@pytest.mark.parametrize("run", [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor])
def test_a_truth_value_meets_the_last_bit_of_an_integer(run):
    numbers = torch.tensor([[-3, -2, -1, 0], [1, 2, 3, 250]])
    agrees(lambda x, y: (run(x > 0, y), run(y, x < 0), run(x > 0, torch.ones(2, 4, dtype=torch.int32))),
           torch.randn(2, 4), numbers)  # fmt: skip


def test_views_of_memory_and_parts_without_elements():
    """Pooling images whose channels lie innermost reads them by strides; rotary positions of all columns leave none."""

    def run(x, image):
        y = x[0] * 2
        pooled = torch.nn.AdaptiveAvgPool2d(1)(image.permute(0, 3, 1, 2)).flatten(1)
        strided = [torch.as_strided(item, (3, 4), (2, 1), 1) for item in (y, y.t())]
        whole = torch.cat([x[:, :, :9] * 2, torch.relu(x[:, :, 33:])], dim=-1)
        return pooled, *strided, whole, torch.cat([y, y[:, 33:] @ torch.ones(0, 3)], dim=1)

    agrees(run, X, IMAGE)


def test_linear_layers_of_one_row_and_of_one_value():
    """Weights without a dimension of outputs, as D-FINE sums its distances up; an input of one dimension."""
    row, table = torch.randn(33), torch.randn(5, 33)
    agrees(lambda x, y: (F.linear(x, row), F.linear(y, row), F.linear(y, table)), X, X[0, 0])


def test_writing_a_view_of_memory():
    """Some elements, all in another order, and none twice; the memory is that of the operand, transposed or not."""

    def run(x):
        y = x[0, :3, :4] * 2
        other = x[1, :2, :3] + 1
        grid_transpose = torch.as_strided_scatter(y.t(), x[1, :4, :3], (4, 3), (3, 1), 0)
        return torch.as_strided_scatter(y, other, (2, 3), (5, 1), 1), grid_transpose

    agrees(run, X)


def test_where_has_the_shape_of_all_three():
    """Zeros, too, make what is chosen as wide as they are."""
    column = X[0, :3, :1]

    def run(c, y):
        wide = torch.zeros(3, 5)
        return torch.where(c, wide, y) + 0.5, torch.where(c, y, wide), torch.where(c, wide, wide + 1)

    agrees(run, column > 0, column)


SEEN = torch.ones(3, 17, dtype=torch.bool)
SEEN[1], SEEN[2, 9:] = False, False
LEAST = torch.finfo(torch.float32).min


def masked(x, seen):
    """Softmax under masks of several makes; nothing is left of the row in the middle."""
    keep = torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=seen[None, :, :3])
    once = torch.softmax(x.masked_fill(~seen, LEAST), -1)
    added = torch.softmax(x + (1 - seen.float()) * LEAST, -1)
    twice = torch.softmax(x.masked_fill(~seen, LEAST / 2) + (1 - seen.float()) * LEAST / 2, -1)
    return once, added, twice, torch.softmax(x.t().masked_fill(~seen.t(), LEAST), 0), keep


def test_rows_of_which_nothing_is_left():
    agrees(masked, X[0, :3, :17], SEEN)
    agrees(lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=SEEN[:, :3]), X[:1, :3, :17])


@pytest.mark.parametrize(("arch", "df"), [("wormhole_b0", "Bfp8_b"), ("grayskull", "Bfp8_b")])
def test_masks_leave_the_scores_beside_them(arch, df):
    """In a block of sixteen numbers with one exponent nothing would be left of a score beside a mask."""
    x = X[0, :3, :17]
    compiled = be.compile(Small(masked), (x, SEEN), arch=arch, df=df, effort="low")
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(x, SEEN, precision="device"), masked(x, SEEN), strict=True):
        np.testing.assert_allclose(got, want.numpy(), atol=0.05)
    compiled.close()


flex = pytest.importorskip("torch.nn.attention.flex_attention")


class Flexible(torch.nn.Module):
    """Attention whose mask and scores are functions of places."""

    def __init__(self, is_seen, change, **words):
        super().__init__()
        self.register_buffer("bias", torch.randn(4, 6, 6))
        self.blocks = is_seen and flex.create_block_mask(is_seen, None, None, 6, 6, device="cpu")
        self.change, self.words = change, words

    def _changed(self, score, _, head, query, key):
        return self.change(score, self.bias[head, query, key], query - key)

    def forward(self, q, k, v):
        changed = self.change and self._changed
        return flex.flex_attention(q, k, v, changed, self.blocks, enable_gqa=True, **self.words)


HEADS = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)


@pytest.mark.parametrize(
    "change",
    [
        None,
        lambda score, bias, distance: torch.tanh(score) + 2 * bias - 0.5 * distance,
        lambda _score, _bias, distance: 0.3 * distance,  # neither the score nor the head
    ],
)
@pytest.mark.parametrize("is_seen", [None, lambda _, __, q, k: q >= k, lambda _, h, q, k: (q > k) | (h + k == 4)])
def test_attention_by_functions_of_places(is_seen, change):
    """Of the last mask the first row sees nothing but for one head."""
    agrees(Flexible(is_seen, change, scale=0.3), *HEADS)


class Selecting(torch.nn.Module):
    """Changes the elements that a constant mask selects."""

    def __init__(self, mask, size):
        super().__init__()
        self.register_buffer("numbers", torch.tensor(mask))
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        mask = self.numbers == 1
        result = torch.zeros_like(x)
        result[mask] = self.linear(x[mask])
        return result


@pytest.mark.parametrize("mask", [[1, 0, 1, 1], [1, 1, 1, 1], [[1, 2, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]]])
def test_a_constant_mask_selects_elements(mask):
    agrees(Selecting(mask, 5).eval(), torch.randn(4, 3, 5))


def test_a_constant_mask_that_selects_nothing_is_refused():
    with pytest.raises(be.UnsupportedError, match="a mask as index that selects nothing"):
        be.compile(Selecting([0, 0, 0, 0], 5).eval(), (torch.randn(4, 3, 5),), effort="low")


def _unpool(x, kernel, stride=None, pad=0, *, size=None, ceil=False, dilation=1, keeps=False):
    """Another value at the place of the largest of each window, and what `keeps` the places as numbers."""
    rank = len(kernel) if isinstance(kernel, tuple) else 2
    pool, unpool = (F.max_pool1d, F.max_unpool1d) if rank == 1 else (F.max_pool2d, F.max_unpool2d)
    largest, places = pool(x, kernel, stride, pad, dilation, ceil, return_indices=True)
    values = largest * 2 + torch.arange(1.0, 1 + largest.numel()).reshape(largest.shape)
    spread = unpool(values, places, kernel, stride, pad, size or x.shape[-rank:])
    return (spread, places) if keeps else spread


@pytest.mark.parametrize(
    ("run", "inputs", "complaint"),
    [
        (torch.nn.MaxPool2d(2, return_indices=True), (IMAGE,), "result 1 of aten.max_pool2d"),
        (lambda x: _unpool(x, 2, keeps=True), (IMAGE,), "result 1 of aten.max_pool2d"),
        (lambda x: _unpool(x, 2, size=(6, 8)), (IMAGE[..., :7, :9],), r"max_unpool2d.*to \[6, 8\], beyond which"),
        (lambda x, y: F.max_unpool2d(x, y, 2), (IMAGE, IMAGE.long()), "max_unpool2d.*that are not those of a max pool"),
        (Flexible(None, None, return_lse=True), HEADS, "result 1 of flex_attention"),
        (Flexible(None, lambda score, *_: torch.special.airy_ai(score)), HEADS, "airy_ai.*flex_attention .an operator"),
        (torch.nn.EmbeddingBag(20, 6), (WORDS[0], torch.tensor([0, 2])), "bags whose sizes are an input"),
        (torch.linalg.det, (torch.randn(3, 3),), "det"),
        (lambda x: torch.as_strided(x[1:], (3,), (1,), 0) * 2, (PAIR,), "elements that its operand does not have"),
        (lambda x: torch.as_strided_scatter(x, x[:2, :2], (2, 2), (1, 1)), (PAIR,), "elements that are written twice"),
        (lambda x: (x * 2, x[:, 7:]), (PAIR,), "output 1 has no elements"),
        (
            lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[:, :5] * -torch.inf),
            (PAIR,),
            "not those of a mask",
        ),
    ],
)
def test_what_cannot_be_is_named(run, inputs, complaint):
    module = run if isinstance(run, torch.nn.Module) else Small(run)
    with pytest.raises(be.UnsupportedError, match=complaint):
        be.compile(module, inputs)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 8, 10), {"kernel": 2}),
        ((3, 8, 10), {"kernel": 2}),
        ((2, 5, 12), {"kernel": (3,)}),
        ((2, 3, 7, 9), {"kernel": 2}),  # the last row and column are in no window
        ((1, 2, 9, 8), {"kernel": 2, "size": (8, 8)}),
        ((1, 2, 8, 8), {"kernel": 2, "size": (8, 9)}),  # places count through rows of 9
        ((2, 2, 9, 8), {"kernel": (3, 2), "stride": (3, 4)}),
        ((1, 2, 8, 7), {"kernel": 3, "stride": 3, "pad": 1}),
        ((1, 2, 7, 7), {"kernel": 2, "ceil": True}),
        ((1, 2, 8, 8), {"kernel": 2, "stride": 4, "dilation": 2}),
        ((2, 2, 8, 9), {"kernel": 3, "stride": 2, "pad": 1}),  # windows overlap: the last value counts
        ((1, 2, 9, 8), {"kernel": (3, 2), "stride": 1, "pad": (1, 0)}),
    ],
)
def test_values_return_to_the_places_of_the_largest(shape, options):
    """The first one in a window of several that are equal."""
    x = torch.randint(-1, 2, shape, generator=torch.Generator().manual_seed(0)).float()
    agrees(lambda x: _unpool(x, **options), x)


def test_volumes_return_to_the_places_of_the_largest():
    def run(x):
        largest, places = F.max_pool3d(x, 2, return_indices=True)
        return F.max_unpool3d(largest, places, 2, output_size=x.shape[-3:])

    agrees(run, torch.randint(-1, 2, (1, 2, 4, 5, 6)).float())


def test_a_token_beside_the_pixels_of_a_convolution():
    """Whose layout has neighbouring pixels in columns, and most of them in rows: there the joined rows stand, too."""

    class Joined(torch.nn.Module):
        """Patches of an image behind a class token."""

        def __init__(self):
            super().__init__()
            self.patches = torch.nn.Conv2d(3, 32, 7, 4, 3)
            self.token = torch.nn.Parameter(torch.randn(1, 1, 32))

        def forward(self, x):
            return torch.cat([self.token, self.patches(x).flatten(2).transpose(1, 2)], 1)

    module, image = Joined().eval(), torch.randn(1, 3, 128, 128)
    compiled = be.compile(module, (image,), effort="low")
    assert compiled.check(strict=True) == ()
    with torch.no_grad():
        np.testing.assert_allclose(compiled(image)[0], module(image).numpy(), atol=1e-3)
    compiled.close()


@pytest.mark.parametrize("first", [True, False])
def test_a_token_beside_many_rows_joins_their_tiles(first):
    """Not a tile for each row, which the token alone, without extent along the rows, would ask for."""

    class Joined(torch.nn.Module):
        """A class token, as vision transformers have it."""

        def __init__(self):
            super().__init__()
            self.token = torch.nn.Parameter(torch.randn(1, 1, 48))

        def forward(self, x, y):
            parts = [self.token, x, y]
            return torch.tanh(torch.cat(parts if first else parts[::-1], 1))

    module, inputs = Joined().eval(), (torch.randn(1, 70, 48), torch.randn(1, 1, 48))
    compiled = be.compile(module, inputs, df="Float32", fidelity="HiFi4", effort="low", microbatch=1)
    assert {placed.op.shape[0] for placed in compiled.placement.ops.values()} == {1}
    assert compiled.check() == ()
    with torch.no_grad():
        np.testing.assert_allclose(compiled(*inputs)[0], module(*inputs).numpy(), atol=1e-5)


NOT_FINITE = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, 1.0, -2.0, 1e5, -1e-6])


def agrees_exactly_where_not_finite(run, *inputs):
    """With torch, also in which values are NaN and infinite."""
    with torch.no_grad():
        expected = tensors(run(*inputs))
    compiled = be.compile(Small(run), inputs)
    for got, want in zip(compiled(*inputs), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-6)
    compiled.close()


def test_values_that_are_not_finite_are_told_apart():
    def run(x):
        signs = torch.isposinf(x), torch.isneginf(x)
        return torch.isnan(x), torch.isinf(x), torch.isfinite(x), *signs, x != x, x == torch.inf

    agrees_exactly_where_not_finite(run, NOT_FINITE)
    agrees_exactly_where_not_finite(lambda x: (torch.isnan(x), torch.isinf(x), torch.isfinite(x)), torch.arange(4))


def test_values_that_are_not_finite_are_replaced():
    """Those that stay are what they were, a NaN among them."""

    def run(x):
        finite = torch.where(torch.isfinite(x), x, -1.0), torch.nan_to_num(x, 1.0, 100.0, -100.0)
        kept = x.masked_fill(torch.isinf(x), 2.0), torch.where(torch.isnan(x), 0.0, x)
        return *finite, *kept, torch.where(~torch.isnan(x) & (x < 5), x, -3.0)

    agrees_exactly_where_not_finite(run, NOT_FINITE)
    holes = torch.tensor([1.0, torch.nan, 3.0, -2.0])
    agrees_exactly_where_not_finite(lambda x: (torch.nanmean(x), torch.nansum(x)), holes)


def test_infinities_that_become_the_largest_float_are_2_to_the_126():
    """Shown by an output they are infinities still (deviations.md)."""

    class Bounded(torch.nn.Module):
        def forward(self, x):
            bounded = torch.nan_to_num(x)
            return bounded, bounded * 2.0**-100

    compiled = be.compile(Bounded(), (torch.ones(3),), effort="low")
    whole, scaled = compiled(np.array([np.inf, -np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(whole, [np.inf, -np.inf, 0])
    np.testing.assert_array_equal(scaled, [2.0**26, -(2.0**26), 0])


def test_angles_of_all_quadrants_axes_and_infinities():
    inf = torch.inf
    y = torch.tensor([0, 0, 1, -1, 0, 1, -1, -1, inf, -inf, inf, 3, -3, 1e-20, 2e5])
    x = torch.tensor([0, 1, 0, 0, -1, 1, 1, -1, inf, inf, 2, -inf, inf, -1e-20, 1e-3])
    agrees_exactly_where_not_finite(torch.atan2, y, x)
    agrees_exactly_where_not_finite(torch.atan2, torch.randn(50), torch.randn(50))


ORDERS = [3, -torch.inf, torch.inf, 0, 1, 2, 0.5, 0.3, -1, -2, 4.5, 9, -0.5]


def norms(x, order):
    norm = torch.linalg.vector_norm
    return norm(x, order, 1), norm(x, order, (0, 2), keepdim=True), norm(x, order)


@pytest.mark.parametrize("order", ORDERS[:4])
def test_norms_of_any_order_also_of_zeros(order):
    x = torch.randn(3, 5, 6)
    x[0], x[1, 2] = 0, 0
    agrees_exactly_where_not_finite(lambda x: norms(x, order), x)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_norms_of_all_orders(order):
    agrees_exactly_where_not_finite(lambda x: norms(x, order), torch.randn(3, 5, 6))


@pytest.mark.parametrize("divisor", [0.7, -0.3])
def test_remainders_of_floats_near_multiples_are_exact(divisor):
    """A quotient that is rounded to a whole number would give the divisor for 0, or 0 for it."""
    x = torch.arange(-60, 60) * 0.1
    full = torch.full_like(x, divisor)
    agrees_exactly_where_not_finite(lambda x: (torch.remainder(x, divisor), torch.fmod(x, divisor)), x)
    agrees_exactly_where_not_finite(lambda x, y: (x % y, torch.fmod(x, y), torch.floor_divide(x, y)), x, full)


@pytest.mark.parametrize("decimals", [0, 2, -1])
def test_numbers_are_rounded_to_decimals(decimals):
    x = torch.cat([torch.arange(-500, 500, 5.0), torch.randn(50) * 7, torch.tensor([0.125, 0.375, 2.5, -0.5])])
    agrees_exactly_where_not_finite(lambda x: torch.round(x, decimals=decimals), x)


def test_diagonals_and_logarithms():
    def run(x):
        diagonals = torch.diagonal(x, 0, 1, 2), torch.diagonal(x, 1, -1, 0), torch.einsum("bii->bi", x)
        size = x.abs() + 0.5
        return *diagonals, torch.log2(size), torch.log10(size), torch.exp2(x), *torch.std_mean(x, 1)

    agrees_exactly_where_not_finite(run, torch.randn(3, 4, 4))


@pytest.mark.parametrize("word", ["sum", "prod", "mean", "amax", "amin"])
def test_several_values_for_a_place_are_reduced(word):
    """At fewer rows than there are, by indices that are an input or constant, with the element itself or without."""
    x, values, index = torch.randn(4, 5, 3), torch.randn(3, 6, 3), torch.randint(0, 5, (3, 6, 3))
    places = torch.tensor([0, 2, 2, 1])

    def run(x, index, values, rows):
        several = x.scatter_reduce(1, index, values, word), x.scatter_reduce(1, index, values, word, include_self=False)
        if word == "sum":
            return *several, x.index_add(1, places, rows, alpha=2.5)
        return *several, x.index_reduce(1, places, rows, word, include_self=False)

    agrees(run, x, index, values, torch.randn(4, 4, 3))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 2), (18, 3)])
def test_images_are_resized_with_a_kernel_as_wide_as_a_pixel(mode, size):
    def run(x):
        forms = [{"size": size}, {"size": size, "align_corners": True}, {"scale_factor": (0.37, 1.9)}]
        return [F.interpolate(x, mode=mode, antialias=True, **form) for form in forms]

    agrees(run, IMAGE)


def test_a_tensor_without_dimensions_is_a_row_of_one_along_dimension_0():
    def run(x):
        places = (
            x.argmax(0),
            x.topk(1, 0),
            x.sort(-1),
            x.gather(0, torch.tensor(0)),
            x.unsqueeze(0),
            x.scatter_add(0, torch.tensor(0), x),
        )
        return (
            x.amax(0),
            x.amin(-1, keepdim=True),
            x.sum(0),
            x.softmax(0),
            x.cumsum(0),
            *places,
            x.flip(0),
            (x > 0).any(0),
        )

    agrees_exactly_where_not_finite(run, torch.tensor(0.75))


# ------------------------------------------------------------------------------------------------- negative indices
@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 24))])
def test_labels_that_are_ignored_count_for_no_class(seed):
    """Labels are an input, or computed; the number that is ignored may be that of no class."""
    rng = random.Random(seed)
    classes = rng.choice((5, 40))
    space = rng.choice(((), (3,), (2, 3)))
    ignored = rng.choice((-1, -2, -classes, -100, 255, 2))
    weight = torch.rand(classes) + 0.5 if rng.random() < 0.5 else None
    reduction = rng.choice(("mean", "sum", "none"))
    shift = rng.choice((0, 0, 3))
    loss = rng.choice((F.nll_loss, F.cross_entropy))
    target = torch.randint(0, classes, (6, *space))
    target[torch.rand(target.shape) < 0.4] = ignored
    target[0] = 1  # a mean of nothing is NaN
    run = lambda x, y: loss(x, y - shift if shift else y, weight, ignore_index=ignored, reduction=reduction)  # noqa: E731
    agrees(run, torch.randn(6, classes, *space), target + shift)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 24))])
def test_negative_indices_count_from_the_end(seed):
    """Of a table that is constant, an input, or computed, by indices of the first dimension, another, or both."""
    rng = random.Random(seed)
    held = torch.randn(7, 6, 4)
    number = torch.tensor([rng.randrange(-7, 7) for _ in range(5)])
    other = torch.tensor([rng.randrange(-6, 6) for _ in range(5)])
    reads = [lambda x, i, _: x[i], lambda x, _, j: x[:, j], lambda x, i, j: x[i, j], lambda x, i, j: x[i, :, j % 4],
             lambda x, i, j: torch.index_put(x, (i, j), torch.tensor(9.0)),
             lambda x, i, _: torch.index_put(x, (i,), torch.tensor(9.0), accumulate=True),
             lambda x, _, j: x.index_fill(1, j, 9.0)]  # fmt: skip
    read = rng.choice(reads)
    if rng.random() < 0.5:
        agrees(lambda i, j: read(held, i, j) * (j + i).sum(), number, other)
    else:
        agrees(lambda x, i, j: read(x, i, j) * (j + i).sum(), held, number, other)


def test_indices_beyond_a_table_are_refused_by_name():
    table = torch.randn(7, 4)
    compiled = be.compile(Small(lambda i: table[i]), (torch.tensor([0, 1]),), effort="low")
    for index in (7, -8):
        with pytest.raises(be.HostError, match=f"index {index}: the model takes indices from -7 to 6$"):
            compiled(torch.tensor([0, index]))
    compiled = be.compile(torch.nn.Embedding(7, 4), (torch.tensor([0, 1]),), effort="low")
    with pytest.raises(be.HostError, match="index -1: the model takes indices from 0 to 6; add the number of rows"):
        compiled(torch.tensor([0, -1]))


def test_rows_of_infinities_are_numbers_as_the_docs_say():
    """docs/reference/deviations.md: torch has NaN."""
    module = Small(lambda x, mask, zeros: (
        x.softmax(-1), x.log_softmax(-1), (x + 5).masked_fill(mask, -torch.inf).softmax(-1), zeros / zeros,
        F.cross_entropy(zeros, torch.full((2,), -100)),
    ))  # fmt: skip
    x = torch.full((2, 4), -torch.inf)
    inputs = torch.where(torch.tensor([[True], [False]]), x, torch.ones(2, 4)), torch.ones(2, 4) > 0, torch.zeros(2, 4)
    softmax, log_softmax, masked, quotient, mean = be.compile(module, inputs, effort="low")(*inputs)
    np.testing.assert_allclose(softmax[0], 0.25, rtol=1e-3)
    np.testing.assert_allclose(log_softmax[0], -np.log(4), rtol=1e-3)
    np.testing.assert_allclose(masked, 0.25, rtol=1e-3)
    assert (quotient == 0).all()
    assert mean == 0


def is_right(run, *inputs):
    """The graph of a function, computed by numpy, gives what torch gives; quicker than `agrees`."""
    for got, want in zip(computed(run, *inputs), tensors(run(*inputs)), strict=True):
        np.testing.assert_allclose(got, want.float().numpy(), rtol=1e-4, atol=1e-5)


def computed(run, *inputs):
    """The results of a function's graph, computed by numpy."""
    graph = read(run, *inputs)
    labels = [graph.nodes[name].attrs["label"] for name in graph.inputs]
    values = evaluate(graph, dict(zip(labels, (value.float().numpy() for value in inputs), strict=True)))
    return [values[output.value] for output in graph.outputs]


def read(run, *inputs):
    return read_torch(Small(run).eval(), inputs, None, OpenSizes({}))


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("with_weight", [True, False])
def test_norms_with_some_of_their_operands(with_weight, with_bias):
    weight = torch.randn(6) if with_weight else None
    bias = torch.randn(6) if with_bias else None
    is_right(lambda x: F.layer_norm(x, (6,), weight, bias), torch.randn(2, 6, 6))
    is_right(lambda x: F.group_norm(x, 3, weight, bias), torch.randn(2, 6, 6))
    is_right(lambda x: F.instance_norm(x, weight=weight, bias=bias), torch.randn(2, 6, 6))
    is_right(lambda x: F.batch_norm(x, torch.zeros(6), torch.ones(6), weight, bias), torch.randn(2, 6, 6))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_norm_without_an_epsilon_has_that_of_its_type(dtype):
    x = torch.randn(2, 5, dtype=dtype) * 1e-3
    (got,) = computed(lambda x: F.rms_norm(x, (5,)), x)
    np.testing.assert_allclose(got, F.rms_norm(x, (5,)).float().numpy(), rtol=1e-2)


def random_complex_steps(draw):
    """Steps of complex arithmetic with numbers that are real or complex, on either side."""
    steps = []
    for _ in range(4):
        number = draw.choice([draw.randint(-2, 2), draw.random(), complex(draw.randint(-1, 1), draw.choice([-1, 0.5]))])
        steps.append(
            draw.choice(
                [
                    lambda z, n=number: z + n,
                    lambda z, n=number: n - z,
                    lambda z, n=number: z - n,
                    lambda z, n=number: z * n,
                    lambda z, n=number: n * z,
                    lambda z, n=number: F.pad(z, (1, 1), value=n.real)[..., 1:],
                    lambda z, n=number: torch.add(z, z * n, alpha=2),
                ]
            )
        )
    return steps


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.slow) for n in range(8, 200))])
def test_complex_values_and_numbers(seed):
    steps = random_complex_steps(random.Random(seed))

    def run(x):
        z = torch.fft.fft(x)
        for step in steps:
            z = step(z)
        return torch.view_as_real(z)

    is_right(run, torch.randn(2, 6))


def test_a_constant_index_outside_of_its_dimension_is_refused():
    x = torch.randn(4, 3)
    for run in (
        lambda x: x[torch.tensor([5])] * 1,
        lambda x: x[torch.tensor([0]), torch.tensor([-4])] * 1,
        lambda x: x.index_select(0, torch.tensor([-1])) * 1,
        lambda x: x.gather(0, torch.tensor([[9, 0, 0]])) * 1,
    ):
        with pytest.raises(UnsupportedError, match=r"index -?\d of a dimension of \d: it has"):
            read(run, x)


@pytest.mark.parametrize(
    ("run", "index"),
    [
        (lambda x, i: (x * 2)[i], -5),
        (lambda x, i: (x * 2)[i], 4),
        (lambda x, i: (x * 2).index_select(0, i), -1),
        (lambda x, i: (x * 2).gather(0, i[:, None].expand(1, 3)), -1),
        (lambda x, i: x[:1] + F.one_hot(i, 3), 3),
    ],
)
def test_an_index_of_an_input_outside_of_its_dimension_is_refused_by_the_host(run, index):
    x = torch.randn(4, 3)
    compiled = be.compile(Small(run).eval(), (x, torch.tensor([1])), effort="low")
    np.testing.assert_allclose(compiled(x, torch.tensor([1]))[0], run(x, torch.tensor([1])), rtol=1e-3, atol=1e-4)
    with pytest.raises(HostError, match=rf"index {index}: the model takes indices from"):
        compiled(x, torch.tensor([index]))
    compiled.close()


def test_operands_with_fewer_dimensions_than_usual():
    is_right(F.scaled_dot_product_attention, torch.randn(7, 8), torch.randn(5, 8), torch.randn(5, 4))
    is_right(lambda x: x.unfold(0, 1, 1) + 1, torch.tensor(2.5))


@pytest.mark.parametrize(
    "error", [IndexError("tuple index out of range"), KeyError("dim"), ZeroDivisionError("by zero")]
)
def test_whatever_a_handler_raises_for_its_arguments_names_the_operator(monkeypatch, error):
    def handler(b, x):
        raise error

    monkeypatch.setitem(ATEN._declared, "tanh", ATEN["tanh"]._replace(handler=handler))
    with pytest.raises(UnsupportedError, match=rf"tanh.*{type(error).__name__}"):
        read(torch.tanh, torch.randn(2))


INF = torch.inf
MOVES = [
    lambda x: x[1:, :-1],
    lambda x: F.pad(x, (1, 2)),
    lambda x: x.flip(0, 1),
    lambda x: torch.cat([x, x[:2]], 0),
    lambda x: x.repeat(2, 1),
    lambda x: x.t().reshape(2, -1),
    lambda x: F.max_pool2d(x[None, None], 2, 1),
    lambda x: x.sort(1).values,
    lambda x: x.logsumexp(1),
    lambda x: (x.argmax(1), x.argmin(0), x.max(0).indices, x >= x.flip(0), x == x),
    lambda x: x,
]


def moves_infinities(seed):
    """A tensor with infinities as an input, moved in a drawn way, comes out as it does from torch."""
    draw = random.Random(seed)
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(seed))
    x[torch.rand(4, 6, generator=torch.Generator().manual_seed(seed + 1)) < 0.4] = draw.choice([-INF, INF])
    if draw.random() < 0.3:
        x[draw.randrange(4)] = -INF
    agrees_exactly_where_not_finite(MOVES[seed % len(MOVES)], x)


@pytest.mark.parametrize("seed", range(3))
def test_infinities_of_inputs_are_moved(seed):
    moves_infinities(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 44))
def test_infinities_of_inputs_are_moved_in_many_ways(seed):
    moves_infinities(seed)


def test_attention_under_masks_of_floats_that_are_inputs():
    """0 for a row of -inf, the mean for a row of the least float32."""
    mask = torch.tensor([[-INF] * 3, [0.0, -INF, 1.0], [LEAST_FLOAT] * 3])
    inputs = torch.randn(1, 3, 8), torch.randn(1, 3, 8), torch.randn(1, 3, 8), mask
    agrees(F.scaled_dot_product_attention, *inputs)


LEAST_FLOAT = torch.finfo(torch.float32).min


@pytest.mark.parametrize("precision", ["ideal", "format", "device"])
def test_a_place_exists_whatever_is_largest(precision):
    """Infinities that arise on the way, as an overflow."""
    module = Small(lambda x: (lambda y: (y.argmax(1), (-y).argmax(1), y.argmin(1), y.max(1).indices))(x.exp()))
    x = torch.tensor([[1000.0, 1.0, 1000.0], [0.0, 1000.0, 1.0], [1000.0, 1000.0, 1000.0]])
    for places in be.compile(module, (x,), effort="low")(x, precision=precision):
        assert ((places >= 0) & (places < 3)).all()


def powers_agree(seed):
    draw = random.Random(seed)
    exponent = draw.choice([0.1, 0.3, 0.25, 1 / 2.4, 2.7, 4.5, 9.0, -9.0, -0.3, -1.7, 0.0, 3.0])
    x = torch.tensor([0.0, -1.0, -2.0, 0.5, 2.0, 1.0, draw.uniform(0.1, 4), draw.uniform(-4, -0.1)])
    y = torch.tensor([draw.choice([0.0, 2.0, -2.0, 3.0, 0.5, -0.3, exponent]) for _ in range(8)])
    agrees_exactly_where_not_finite(
        lambda x, y: (x**exponent, F.relu(x) ** abs(exponent), (x.abs() + 0.5) ** exponent, x**y, 2.0**y), x, y
    )


@pytest.mark.parametrize("seed", range(2))
def test_powers_of_zero_and_below(seed):
    powers_agree(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 30))
def test_many_powers_of_zero_and_below(seed):
    powers_agree(seed)


@pytest.mark.parametrize("pads", [(-1, 2), (-2, 3), (4, -1), (2, 1), (-1, -2)])
def test_a_side_that_is_cut_off_is_not_repeated_on_the_other(pads):
    """torch cuts off what is negative first; `reflect` and `replicate` read the whole."""
    modes = ["circular", "replicate", "reflect"]
    agrees(lambda x: [F.pad(x, pads, mode=mode) for mode in modes], torch.randn(2, 3, 5))


def test_gelu_is_as_exact_as_its_page_says():
    x = torch.linspace(-10, 10, 20_001)[None]
    compiled = be.compile(torch.nn.GELU(), (x,), effort="low")
    exact = F.gelu(x.double()).numpy()
    assert np.abs(compiled(x)[0] - exact).max() < 2.6e-5


class First(torch.nn.Module):
    """The first few and the last few elements of a dimension in order, with their places."""

    def __init__(self, count, dim):
        super().__init__()
        self.count = count
        self.dim = dim

    def forward(self, x):
        return (*torch.topk(x, self.count, dim=self.dim), *torch.topk(x, self.count, dim=self.dim, largest=False))


@pytest.mark.parametrize(("shape", "count", "dim"), [((2, 4500), 7, 1), ((4200, 2), 3, 0), ((1, 4096 + 512), 128, -1)])
def test_the_first_of_very_many_elements_are_exact_and_equal_ones_keep_their_order(shape, count, dim):
    x = (torch.randn(shape) * 200).round() / 100  # with many equal elements
    results = be.compile(First(count, dim), (x,), effort="low")(x)
    for observed, descending in ((results[:2], True), (results[2:], False)):
        expected = torch.sort(x, dim=dim, descending=descending, stable=True)
        for array, tensor in zip(observed, expected, strict=True):
            assert np.array_equal(array, tensor.narrow(dim, 0, count))


@pytest.mark.parametrize(
    "run",
    [
        lambda x: F.avg_pool2d(x.long(), 2),
        lambda x: F.interpolate(x.to(torch.uint8), size=(5, 9), mode="bilinear"),
        lambda x: F.interpolate(x.to(torch.uint8), size=(5, 9), mode="bilinear", antialias=True),
    ],
)
def test_means_of_integers_are_refused(run):
    with pytest.raises(UnsupportedError, match="a mean of integers"):
        be.compile(Small(run), (torch.rand(1, 2, 6, 6) * 9,))


def test_a_part_takes_the_element_type_of_what_it_replaces():
    x = torch.arange(9)
    part = torch.tensor([1.7, -1.7, 2.5, -0.5])
    agrees(lambda x, part: torch.slice_scatter(x, part, 0, 2, 6).float() * 2, x, part)
