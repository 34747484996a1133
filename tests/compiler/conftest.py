"""The IR after each pass is verified in all tests of the compiler."""

import pytest

from buda_emu.compiler import pipeline

pytest.register_assert_rewrite("compiler.pass_pairs")


@pytest.fixture(autouse=True)
def _verify_each(monkeypatch):
    monkeypatch.setattr(pipeline, "VERIFY_EACH", True)
