"""Workers of these tests do small jobs of their own, too."""

import pytest

import jobs_of_tests


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch):
    jobs_of_tests.allow(monkeypatch.setattr)
