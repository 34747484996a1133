"""The matcher of near words."""

import time
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.netlist.fields import OP_FIELDS, QUEUE_FIELDS
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker.suggest import SYNONYMS, distance, near, nearest, rank_words


@pytest.mark.parametrize(
    ("word", "words", "expected"),
    [
        ("qeue", ["queue", "ram"], "queue"),
        ("FLOAT16_B", ["Float16", "Float16_b"], "Float16_b"),
        ("input-count", ["input_count", "inputs"], "input_count"),
        ("V04l", ["V040", "V041", "V042"], "V041"),
        ("mul", ["add", "multiply", "maximum"], "multiply"),
        ("bf16", ["Float16", "Float16_b", "Bfp8_b"], "Float16_b"),
        ("bfloat16", ["Float16", "Float16_b"], "Float16_b"),
        ("fp32", ["Float32", "Float16"], "Float32"),
        ("max", ["maximum", "matmul"], "maximum"),
        ("Softmax", ["softmax"], "softmax"),
        ("quant", ["quantization", "add"], "quantization"),
        ("inpt", ["input", "inputs"], "input"),
        ("unifrom", ["uniform", "normal"], "uniform"),
        ("bfp8b", ["Bfp8", "Bfp8_b", "Bfp4_b"], "Bfp8_b"),
        ("inputcount", ["input_count", "inputs"], "input_count"),
        ("grid_loc_", ["grid_loc", "grid_size"], "grid_loc"),
        ("fp16b", ["Float16", "Float16_b"], "Float16_b"),
        ("leaky relu", ["lrelu", "exp"], "lrelu"),
        ("relu_enable", ["relu_en", "relu_mode"], "relu_en"),
        ("stochastic-rounding-mode", ["stoch_rnd_mode"], ""),  # rnd does not begin rounding
        ("math_fid", ["math_fidelity", "math_op"], "math_fidelity"),
        ("q_100000", ["q_10"], ""),  # a number is not shortened
        ("grid_position", ["grid_po", "grid_pos"], ""),
        ("q11", ["q_11", "q1_1"], ""),  # both are it without underscores
        ("___", ["_"], ""),
        ("cat", ["bat", "hat"], ""),  # nobody knows which
        ("q1", ["q2", "q3"], ""),
        ("elephant", ["queue", "ram"], ""),
        ("", ["queue"], ""),
        ("x" * 100, ["x" * 99], ""),
        ("queue", [], ""),
    ],
)
def test_nearest(word: str, words: list[str], expected: str) -> None:
    assert nearest(word, words) == expected


LANGUAGE = tuple(dict.fromkeys((*NETLIST_FORMATS, *OP_TYPES, *ATTRIBUTES, *QUEUE_FIELDS, *OP_FIELDS)))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 60))])
def test_a_word_in_another_case_and_with_other_separators_is_suggested(seed: int) -> None:
    random = Random(seed)
    joined = Counter(word.replace("_", "").lower() for word in LANGUAGE)
    for word in LANGUAGE:
        letters = [random.choice((letter, letter.upper(), letter.lower())) for letter in word if letter != "_"]
        places = range(1, len(letters))
        for place in sorted(random.sample(places, min(len(places), random.randrange(3))), reverse=True):
            letters.insert(place, random.choice("_- "))
        written = "".join(letters)
        if joined[word.replace("_", "").lower()] == 1:
            assert nearest(written, LANGUAGE) == word, written


def test_near_is_a_question() -> None:
    assert near("qeue", ["queue"]) == "did you mean 'queue'?"
    assert near("elephant", ["queue"]) == ""


def test_several_choices_come_nearest_first() -> None:
    assert rank_words("queue_12", ["queue_13", "queue_1", "queue_1234", "ram"]) == ["queue_1", "queue_13", "queue_1234"]


def test_synonyms_are_mutual() -> None:
    assert all(word in SYNONYMS[other] for word, others in SYNONYMS.items() for other in others)


def slips(first: str, second: str) -> int:
    """The definition, slowly: a letter more, less or other, neighbours exchanged."""
    if not first or not second:
        return len(first) + len(second)
    found = [
        slips(first[1:], second) + 1,
        slips(first, second[1:]) + 1,
        slips(first[1:], second[1:]) + (first[0] != second[0]),
    ]
    if len(first) > 1 and len(second) > 1 and first[0] == second[1] and first[1] == second[0]:
        found.append(slips(first[2:], second[2:]) + 1)
    return min(found)


WORDS = st.text("abc", max_size=5)


@given(WORDS, WORDS, st.integers(0, 5))
def test_distance_is_that_of_the_definition(first: str, second: str, most: int) -> None:
    assert distance(first, second, most) == min(slips(first, second), most + 1)


@given(st.text(max_size=70), st.lists(st.text(max_size=20), max_size=100))
def test_what_is_suggested_is_a_known_word(word: str, words: list[str]) -> None:
    assert nearest(word, words) in {"", *words}
    assert set(rank_words(word, words)) <= set(words)


def test_many_names_take_no_time() -> None:
    names = [f"layer_{number}_output_queue" for number in range(20_000)]
    start = time.process_time()
    nearest("layer_99999_outptu_queue", names)
    assert time.process_time() - start < 1


def test_a_beginning_of_three_letters_tells_a_word_and_one_of_two_does_not():
    words = ["granularity", "identity_kernel"]
    assert nearest("gra", words) == "granularity"
    assert nearest("gr", words) == ""
    assert nearest("gra", ["granularity", "grandfather"]) == ""


def test_choices_may_have_as_many_slips_as_are_allowed():
    assert rank_words("abcdef", ["abcdxy", "abcxyz"]) == ["abcdxy"]  # two slips in six letters, not three
    assert rank_words("abc", ["abx", "axy"]) == ["abx"]
    assert rank_words("abcdefghi", ["abcdefxyz"]) == ["abcdefxyz"]
    assert rank_words("abcdefghijkl", ["abcdefghwxyz"]) == []  # never four
    assert rank_words("word", ["ward", "worn", "wor", "cord"]) == ["cord", "ward", "wor"]  # as near: by the alphabet


@pytest.mark.parametrize("most", range(6))
def test_a_distance_is_exact_up_to_the_most_that_is_asked_for(most):
    for first, second, slips in (
        ("kitten", "sitting", 3),
        ("abcd", "badc", 2),
        ("aaaaaa", "bbbbbb", 6),
        ("", "abc", 3),
        ("abcdef", "abcdef", 0),
        ("axbxcx", "abc", 3),
    ):
        assert distance(first, second, most) == min(slips, most + 1), (first, second)


def test_an_exchange_needs_two_letters_of_each_word() -> None:
    assert distance("ababb", "ab", 5) == 3


def test_of_very_many_names_those_with_the_same_end_are_compared() -> None:
    crowd = [f"q{number:03}zq" for number in range(900)]
    assert near("xelight", [*(name + "x" for name in crowd), "delight"]) == "did you mean 'delight'?"
