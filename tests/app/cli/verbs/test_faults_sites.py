"""Faults of a file: a campaign of them writes its results as any other does."""

import json

from buda_emu.app.cli.main import main
from shared_files import ROOT

NETLIST = str(ROOT / "netlists" / "matmul.yaml")


def test_results_of_faults_of_a_file_are_written(tmp_path):
    sites = tmp_path / "sites.jsonl"
    assert main(["faults", NETLIST, "-q", "--count", "3", "--write-sites", str(sites)]) == 0
    results = tmp_path / "results.json"
    assert main(["faults", NETLIST, "-q", "--sites", str(sites), "--json", str(results)]) == 0
    written = [json.loads(line) for line in sites.read_text().splitlines()]
    assert json.loads(results.read_text())["settings"]["given"] == written
