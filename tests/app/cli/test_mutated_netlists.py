"""Whole commands on spoilt netlists: only documented exit codes, `run` refuses what `check` refuses, `route` what
`check --strict` refuses of pipes and streams, none hangs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buda_emu.app.cli.main import main
from buda_emu.netlist.yaml_reader import read_tree
from mutations import mutated, text_of, tree_of
from shared_files import CORPUS, ROOT

PUBLIC = (
    "verif/op_tests/netlists/netlist_splice_kernel_broadcast.yaml",
    "verif/op_tests/netlists/netlist_int8_dequant.yaml",
    "verif/op_tests/netlists/netlist_matmul_ident_op_nz_counts.yaml",
    "verif/op_tests/netlists/netlist_topk_k4.yaml",
    "verif/netlist_tests/netlists/basic_ram/netlist_dual_view_ram.yaml",
)
OWN = sorted((ROOT / "netlists").glob("*.yaml"))
FILES = [path for path in (*OWN, *(CORPUS / "netlists" / name for name in PUBLIC)) if path.exists()]
TREES = [tree_of(read_tree(path.read_text())) for path in FILES]
SECONDS = 60

common = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], database=None
)
spoilt = st.sampled_from(TREES).flatmap(mutated).map(text_of)


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Fails what takes longer."""

    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_and_judge(text, directory, capsys):
    path = directory / "net.yaml"
    path.write_text(text)
    with limit(SECONDS):
        checked = main(["check", str(path)])
        ran = main(["run", str(path), "--threads", "1", "--quiet"])
    shown = capsys.readouterr().err
    assert checked in (0, 2), shown
    assert ran in ((0, 2, 3, 4) if checked == 0 else (2,)), shown


def route_and_judge(text, directory, capsys):
    path = directory / "net.yaml"
    path.write_text(text)
    with limit(SECONDS):
        checked = main(["check", "--strict", str(path)])
        routed = main(["route", str(path), "--output", str(directory / "streams")])
    shown = capsys.readouterr().err
    assert checked in (0, 2), shown
    assert routed in ((0, 3) if checked == 0 else (0, 2, 3)), shown


@settings(common, max_examples=100)
@given(text=spoilt)
def test_routing_has_only_documented_exit_codes(text, tmp_path, capsys):
    route_and_judge(text, tmp_path, capsys)


@pytest.mark.slow
@settings(common, max_examples=3000)
@given(text=spoilt)
def test_routing_has_only_documented_exit_codes_at_length(text, tmp_path, capsys):
    route_and_judge(text, tmp_path, capsys)


@settings(common, max_examples=100)
@given(text=spoilt)
def test_only_documented_exit_codes(text, tmp_path, capsys):
    run_and_judge(text, tmp_path, capsys)


@pytest.mark.slow
@settings(common, max_examples=3000)
@given(text=spoilt)
def test_only_documented_exit_codes_at_length(text, tmp_path, capsys):
    run_and_judge(text, tmp_path, capsys)
