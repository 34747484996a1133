"""Where the shared corpus lies: `../shared` beside the project, or the directory that BUDA_EMU_SHARED names.

Tests that need it ask for the `corpus` fixture, or parametrise over `corpus_files(...)`. Without it they are skipped,
visibly.
"""

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("BUDA_EMU_SHARED") or ROOT.parent / "shared")
CORPUS = SHARED / "corpus"
NO_CORPUS = f"no corpus at {CORPUS} (set BUDA_EMU_SHARED)"

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)


def corpus_files(pattern: str) -> list[Any]:
    """Parameters for a test: one path for each matching file of the corpus, or a single skipped one."""
    if not CORPUS.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason=NO_CORPUS), id="no-corpus")]
    paths = sorted(path for path in CORPUS.glob(pattern) if path.is_file())
    return [pytest.param(path, id=str(path.relative_to(CORPUS))) for path in paths]
