from buda_emu.spec.varinst import shorten


def test_texts_of_forty_characters_are_shown_whole():
    assert shorten("x" * 40) == "x" * 40
    assert shorten("x" * 41) == "x" * 40 + "..."
