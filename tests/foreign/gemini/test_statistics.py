"""What a schedule moves and computes, by hand."""

from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.statistics import statistics
from gemini_schedules import schedule


def test_the_accesses_of_the_small_schedule():
    found = statistics(gemini.load(schedule("b")))
    # Convolution: inputs of 3 channels 3 x 4 for each half, and all of 216 bytes of weights twice; the sum reads two
    # halves of 64; the dense layer reads 128 and 1280 bytes of weights. Stores read 128 and 10 bytes.
    assert found.accesses["l2_read_byte"] == 2 * (36 + 216) + 2 * 64 + 128 + 1280 + 128 + 10
