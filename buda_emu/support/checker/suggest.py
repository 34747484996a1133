"""Near words: the one matcher for every "did you mean ...?".

Words are tried in this order: the same word but for case, hyphens and letters that look alike; the same word but for
underscores, hyphens and blanks, which may be there or not; a synonym from another system; the only word that begins
with it; the word with the smallest distance (Damerau and Levenshtein: a letter more, less, other, or two exchanged);
the only word of the same parts of which some are shortened, as in `relu_en` for `relu_enable`. Where two are equally
near, none is suggested.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from buda_emu.support.checker.fix import replacing

_MAX_WORD = 60  # nobody misspells a longer one
_MAX_CANDIDATES = 60  # comparing is slow, and a document may have thousands of names
_LEAST_BEGINNING = 3  # letters that are enough to tell a word
_LEAST_PART = 2  # letters that are enough for a part of a word, as `en`
_ALIKE = str.maketrans({"l": "1", "i": "1", "o": "0", "-": "_", " ": "_"})

_SAME = (
    "multiply mul times", "divide div truediv", "add plus sum_of", "subtract sub minus", "maximum max fmax",
    "minimum min fmin", "power pow", "reciprocal recip inverse", "absolute abs fabs", "square_root sqrt",
    "sine sin", "cosine cos", "logarithm log ln", "negative neg", "lrelu leaky_relu leakyrelu",
    "matmul mm gemm dot bmm",
    "nop identity noop", "datacopy copy clone", "splice concat concatenate cat", "reduce reduce_sum reduce_max",
    "quantization quantize quantizelinear", "dequantization dequantize dequantizelinear", "topk top_k",
    "embedding gather lookup", "relu relu_en relu_fp16 activation_relu", "softmax softmaxfp32", "sigmoid logistic",
    "float32 fp32 f32 single float", "float16 fp16 f16 half", "float16_b fp16_b bf16 bfloat16 bfloat",
    "tf32 tensorfloat32",
    "int8 i8 si8 char", "uint8 u8 ui8 byte", "int16 i16 si16 short", "uint16 u16 ui16", "int32 i32 si32 int",
    "uint32 u32 ui32 rawuint32", "fp8_e4m3 float8_e4m3fn e4m3", "lf8 float8_e5m2 e5m2",
)  # fmt: skip
SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {word: tuple(group.split()) for group in _SAME for word in group.split()}
)
"""Words of numpy, torch, ONNX and of the documents for the same thing, in small letters."""
_SEPARATORS = str.maketrans("", "", "_- ")
_SYNONYMS_JOINED = {word.translate(_SEPARATORS): group for word, group in SYNONYMS.items()}


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the word that was most likely meant, or "" where none is near or several are."""
    if not word or len(word) > _MAX_WORD:
        return ""
    candidates = list(words)
    return (
        _find_same(word, candidates)
        or _find_synonym(word, candidates)
        or _find_beginning(word, candidates)
        or _find_closest(word, candidates)
        or _find_abbreviated(word, candidates)
    )


def near(word: str, words: Iterable[str]) -> str:
    """Return the hint `did you mean 'x'?` with the nearest of `words`, or "" where none is near, or where `word` itself
    is among them and only illegal in its place."""
    suggestion = nearest(word, words)
    if suggestion in ("", word):
        return ""
    return replacing(f"did you mean '{suggestion}'?", word, suggestion)


def hint_in_parentheses(word: str, words: Iterable[str]) -> str:
    """Return the hint of `near` in parentheses, with a leading blank, to be appended to a message; "" for no hint."""
    hint = near(word, words)
    if not hint:
        return ""
    return f" ({hint})"


def rank_words(word: str, words: Iterable[str], count: int = 3) -> list[str]:
    """Return at most `count` near words, the nearest first, for a list of choices."""
    word = word[:_MAX_WORD]
    slips = {name: distance(_fold(word), _fold(name), 3) for name in _candidates(word, list(words))}
    close = [name for name in slips if slips[name] <= _slip_limit(word, name)]
    return sorted(close, key=lambda name: (slips[name], name))[:count]


def distance(first: str, second: str, limit: int) -> int:
    """Return the number of slips between two words: letters more, less or other, and exchanged neighbours. Counting
    stops above `limit`, and `limit` + 1 is returned."""
    if abs(len(first) - len(second)) > limit:
        return limit + 1
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
        if min(row) > limit and min(before) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def _fold(word: str) -> str:
    """Return a word in lower case with letters that look alike made equal."""
    return word.lower().translate(_ALIKE)


def _slip_limit(word: str, name: str) -> int:
    """Return the number of slips that leave no doubt: none in two letters, one in three, three in nine and more."""
    return min(max(len(word), len(name)) // 3, 3)


def _find_same(word: str, words: list[str]) -> str:
    """Return the word that differs in case, separators and letters that look alike only; "" where there is none, or
    where several differ in separators."""
    folded = _fold(word)
    same = next((name for name in words if _fold(name) == folded), "")
    if same:
        return same
    joined = _fold_and_join(word)
    candidates = {name for name in words if _fold_and_join(name) == joined}
    if joined and len(candidates) == 1:
        return candidates.pop()
    return ""


def _fold_and_join(word: str) -> str:
    """Return a word as `_fold` does, and without underscores, hyphens and blanks."""
    return _fold(word.translate(_SEPARATORS))


def _find_synonym(word: str, words: list[str]) -> str:
    """Return the only word that is a synonym from another system; "" where there is none or several are."""
    others = _SYNONYMS_JOINED.get(word.lower().translate(_SEPARATORS), ())
    matches = [name for name in words if name.lower() in others]
    return matches[0] if len(matches) == 1 else ""


def _find_beginning(word: str, words: list[str]) -> str:
    """Return the only word that begins with this one, which needs three letters; "" where there is none or several
    do."""
    if len(word) < _LEAST_BEGINNING:
        return ""
    lower = word.lower()
    matches = {name for name in words if name.lower().startswith(lower)}
    return matches.pop() if len(matches) == 1 else ""


def _find_abbreviated(word: str, words: list[str]) -> str:
    """Return the only one of `words` that has as many parts, between underscores and hyphens, as this word, where one
    of each two parts begins with the other; "" where there is none or several are."""
    parts = _split_parts(word)
    if len(parts) < 2:
        return ""
    first = parts[0][:1]
    matches = {name for name in words if name[:1].lower() == first and _begin_alike(parts, _split_parts(name))}
    return matches.pop() if len(matches) == 1 else ""


def _split_parts(word: str) -> list[str]:
    """Return the parts of a word between underscores, hyphens and blanks, in small letters."""
    return word.lower().replace("-", "_").replace(" ", "_").split("_")


def _begin_alike(first: list[str], second: list[str]) -> bool:
    """Return whether two words have as many parts, and one of each two parts is the other or begins it with two letters
    or more."""
    if len(first) != len(second):
        return False
    pairs = zip(first, second, strict=True)
    return all(left == right or _begins(left, right) or _begins(right, left) for left, right in pairs)


def _begins(start: str, word: str) -> bool:
    """Return whether `start`, which must be at least two letters without digits, is the beginning of `word`."""
    return len(start) >= _LEAST_PART and start.isalpha() and word.startswith(start)


def _find_closest(word: str, words: list[str]) -> str:
    """Return the word with the fewest slips within `_slip_limit`; "" where there is none, or a second one as near."""
    folded = _fold(word)
    best = ""
    least = len(word) + 1
    for name in _candidates(word, words):
        limit = min(_slip_limit(word, name), least)
        slips = distance(folded, _fold(name), limit)
        if slips < least and slips <= limit:
            best = name
            least = slips
        elif slips == least and name != best:
            best = ""
    return best


def _candidates(word: str, words: list[str]) -> list[str]:
    """Return the words worth comparing: those of about the same length, and of very many only those with the same two
    first or last letters."""
    near = [name for name in words if abs(len(name) - len(word)) <= _slip_limit(word, name)]
    if len(near) > _MAX_CANDIDATES:
        ends = (word[:2], word[-2:])
        near = [name for name in near if name[:2] == ends[0] or name[-2:] == ends[1]][:_MAX_CANDIDATES]
    return near
