"""Near words: the one matcher for every "did you mean ...?".

In this order: the same word but for case, hyphens and letters that look alike; another system's word for the same; the
only word that begins with it; the word that fewest slips of the keyboard away (Damerau and Levenshtein: a letter more,
less, other, or two exchanged). When two are equally near, nobody knows which was meant, and none is suggested.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from buda_emu.support.checker.fix import replacing

_MAX_WORD = 60  # nobody misspells a longer one
_MAX_CANDIDATES = 60  # comparing is slow, and a document may have thousands of names
_LEAST_BEGINNING = 3  # letters that are enough to tell a word
_ALIKE = str.maketrans({"l": "1", "i": "1", "o": "0", "-": "_", " ": "_"})

_SAME = (
    "multiply mul times", "divide div truediv", "add plus sum_of", "subtract sub minus", "maximum max fmax",
    "minimum min fmin", "power pow", "reciprocal recip inverse", "absolute abs fabs", "square_root sqrt",
    "sine sin", "cosine cos", "logarithm log ln", "negative neg", "lrelu leaky_relu leakyrelu",
    "matmul mm gemm dot bmm",
    "nop identity noop", "datacopy copy clone", "splice concat concatenate cat", "reduce reduce_sum reduce_max",
    "quantization quantize quantizelinear", "dequantization dequantize dequantizelinear", "topk top_k",
    "embedding gather lookup", "relu relu_en relu_fp16 activation_relu", "softmax softmaxfp32", "sigmoid logistic",
    "float32 fp32 f32 single float", "float16 fp16 f16 half", "float16_b bf16 bfloat16 bfloat", "tf32 tensorfloat32",
    "int8 i8 si8 char", "uint8 u8 ui8 byte", "int16 i16 si16 short", "uint16 u16 ui16", "int32 i32 si32 int",
    "uint32 u32 ui32 rawuint32", "fp8_e4m3 float8_e4m3fn e4m3", "lf8 float8_e5m2 e5m2",
)  # fmt: skip
SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {word: tuple(group.split()) for group in _SAME for word in group.split()}
)
"""Words of numpy, torch, ONNX and of the documents for the same thing, in small letters."""


def nearest(word: str, words: Iterable[str]) -> str:
    """The word that was most likely meant, "" when none is near or several are."""
    if not word or len(word) > _MAX_WORD:
        return ""
    known = list(words)
    return _same(word, known) or _synonym(word, known) or _beginning(word, known) or _closest(word, known)


def near(word: str, words: Iterable[str]) -> str:
    """`did you mean 'x'?` with the nearest of `words`, or "" when none is near, or the word is one that is not legal in
    its place."""
    found = nearest(word, words)
    return replacing(f"did you mean '{found}'?", word, found) if found not in ("", word) else ""


def rank_words(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """At most so many near words, the nearest first, for a list of choices."""
    word = word[:_MAX_WORD]
    slips = {name: distance(_fold(word), _fold(name), 3) for name in _candidates(word, list(words))}
    close = [name for name in slips if slips[name] <= _slip_limit(word, name)]
    return sorted(close, key=lambda name: (slips[name], name))[:count]


def distance(first: str, second: str, most: int) -> int:
    """Slips between two words: letters more, less or other, and exchanged neighbours. `most` + 1: more than `most`."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        last = before
        before = row
        row = [i]
        for j, right in enumerate(second, 1):
            slips = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right:
                slips = min(slips, last[j - 2] + 1)
            row.append(slips)
        if min(row) > most and min(before) > most:
            return most + 1
    return min(row[-1], most + 1)


def _fold(word: str) -> str:
    return word.lower().translate(_ALIKE)


def _slip_limit(word: str, name: str) -> int:
    """Slips that still leave no doubt: none in two letters, one in three, three in nine and more."""
    return min(max(len(word), len(name)) // 3, 3)


def _same(word: str, known: list[str]) -> str:
    folded = _fold(word)
    found = [name for name in known if _fold(name) == folded]
    return found[0] if found else ""


def _synonym(word: str, known: list[str]) -> str:
    others = SYNONYMS.get(word.lower().replace("-", "_"), ())
    found = [name for name in known if name.lower() in others]
    return found[0] if len(found) == 1 else ""


def _beginning(word: str, known: list[str]) -> str:
    if len(word) < _LEAST_BEGINNING:
        return ""
    lower = word.lower()
    found = {name for name in known if name.lower().startswith(lower)}
    return found.pop() if len(found) == 1 else ""


def _closest(word: str, known: list[str]) -> str:
    folded = _fold(word)
    best = ""
    least = len(word) + 1
    for name in _candidates(word, known):
        allowed = min(_slip_limit(word, name), least)
        slips = distance(folded, _fold(name), allowed)
        if slips < least and slips <= allowed:
            best = name
            least = slips
        elif slips == least and name != best:
            best = ""
    return best


def _candidates(word: str, known: list[str]) -> list[str]:
    """The words worth comparing: of about the same length, and of very many those that share the beginning or end."""
    found = [name for name in known if abs(len(name) - len(word)) <= _slip_limit(word, name)]
    if len(found) > _MAX_CANDIDATES:
        ends = (word[:2], word[-2:])
        found = [name for name in found if name[:2] == ends[0] or name[-2:] == ends[1]][:_MAX_CANDIDATES]
    return found
