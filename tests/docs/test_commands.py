"""The commands and programs of the docs do what the pages say (docs/contributing.md, "Docs")."""

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from buda_emu.arithmetic.jit.kernel import cache_folder
from documents import marked_blocks, says, says_but_for_figures
from shared_files import ROOT

PAGES = [page for page in sorted((ROOT / "docs").glob("**/*.md")) if any(b.mark == "run" for b in marked_blocks(page))]


@pytest.fixture
def place(tmp_path, child_environment):
    """A directory with netlists and examples, and an environment in which `buda-emu` is this project's."""
    for folder in ("netlists", "examples"):
        shutil.copytree(ROOT / folder, tmp_path / "work" / folder)
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "buda-emu").write_text(f'#!/bin/sh\nexec {sys.executable} -m buda_emu "$@"\n')
    (commands / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for command in commands.iterdir():
        command.chmod(0o755)
    caches = tmp_path / "caches"  # of this page alone, but for compiled kernels
    (caches / "buda-emu").mkdir(parents=True)
    kernels = cache_folder()
    if kernels is not None:
        (caches / "buda-emu" / kernels.name).symlink_to(kernels)
    path = f"{commands}:{child_environment['PATH']}"
    return tmp_path / "work", {**child_environment, "PATH": path, "XDG_CACHE_HOME": str(caches)}


def test_there_are_commands_to_hold():
    assert {page.name for page in PAGES} >= {"getting-started.md", "run.md", "check.md", "embedding.md"}


@pytest.mark.parametrize(
    ("printed", "same"),
    [
        ("op a works 14,272.5 of 15,000 cycles", True),
        ("op a works 7 of 8\n  cycles", True),
        ("op b works 7 of 8 cycles", False),
        ("op a works 7 of all cycles", False),
        ("op a works 7 of 8 cycles, 9", False),
    ],
)
def test_figures_of_a_page_stand_for_any(printed, same):
    assert says_but_for_figures("op a works 1,000 of 2,000 cycles", printed) == same
    assert not says_but_for_figures("op a1", "op a2")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page, place):
    """Runs the blocks of a page one after the other in one directory."""
    directory, environment = place
    shown = ""
    for block in marked_blocks(page):
        where = f"{page.name}:{block.line}"
        if block.mark.startswith("run with ") and find_spec(block.mark.removeprefix("run with ")) is None:
            compile(block.text, where, "exec")  # it needs a package that is not here
        elif block.mark == "run" or block.mark.startswith("run with "):
            command = ["bash", "-euo", "pipefail"] if block.language == "sh" else [sys.executable, "-W", "error", "-"]
            done = subprocess.run(
                command, input=block.text, cwd=directory, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"
            shown = done.stdout
        elif block.mark == "output":
            assert says(block.text, shown), f"{where}: it printed\n{shown}"
        elif block.mark == "output with figures":
            assert says_but_for_figures(block.text, shown), f"{where}: it printed\n{shown}"
        else:
            pytest.fail(f"{where}: unknown mark {block.mark}")
