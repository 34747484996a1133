from buda_emu.spec.varinst import shortened


def test_texts_of_forty_characters_are_shown_whole():
    assert shortened("x" * 40) == "x" * 40
    assert shortened("x" * 41) == "x" * 40 + "..."
