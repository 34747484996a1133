"""The scripts of examples/slurm, with a stand-in for `sbatch` that runs the tasks of an array one after the other."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from shared_files import ROOT

SLURM = ROOT / "examples" / "slurm"
SBATCH = """#!/bin/sh
array= ; dependency=
while [ "${1#--}" != "$1" ]; do
    case $1 in --array=*) array=${1#--array=} ;; --dependency=*) dependency=$1 ;; esac
    shift
done
if [ -n "$array" ]; then
    first=${array%-*}; last=${array#*-}
    export SLURM_ARRAY_TASK_COUNT=${SLURM_ARRAY_TASK_COUNT:-$last}
    for task in $(seq "$first" "$last"); do SLURM_ARRAY_TASK_ID=$task "$@" >&2 || echo "task $task: $?" >&2; done
    echo 4711
else
    [ "$dependency" = --dependency=afterany:4711 ] || exit 9
    exec "$@"
fi
"""


@pytest.fixture
def cluster(tmp_path, child_environment):
    """A folder with three netlists, and an environment in which `sbatch` and `buda-emu` can be called."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "sbatch").write_text(SBATCH)
    (commands / "buda-emu").write_text(f'#!/bin/sh\nexec {sys.executable} -m buda_emu "$@"\n')
    for command in commands.iterdir():
        command.chmod(0o755)
    (tmp_path / "netlists").mkdir()
    for name in ("mlp", "softmax", "batch_rows"):
        shutil.copy(ROOT / "netlists" / "recipes" / f"{name}.yaml", tmp_path / "netlists")
    return tmp_path, {**child_environment, "PATH": f"{commands}:{os.environ['PATH']}"}


def submit(cluster, parts):
    """The commands of the page, with so many parts."""
    folder, environment = cluster
    script = (
        f"job=$(sbatch --parsable --array=1-{parts} {SLURM}/test_part.sh netlists/ results/)\n"
        f"sbatch --dependency=afterany:$job {SLURM}/merge_results.py results/ {parts}\n"
    )
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_page_has_these_commands():
    page = (ROOT / "docs" / "run" / "clusters.md").read_text()
    assert "sbatch --parsable --array=1-$parts examples/slurm/test_part.sh netlists/ results/" in page
    assert "sbatch --dependency=afterany:$job examples/slurm/merge_results.py results/ $parts" in page


def test_an_array_tests_every_netlist_once(cluster):
    done = submit(cluster, 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 netlists, 0 not passed")
    results = json.loads((cluster[0] / "results" / "results.json").read_text())
    names = ["netlists/batch_rows.yaml", "netlists/mlp.yaml", "netlists/softmax.yaml"]
    assert [case["netlist"] for case in results["cases"]] == names
    suites = ET.parse(cluster[0] / "results" / "results.xml").getroot()
    assert sorted(case.get("name") for case in suites.iter("testcase")) == [name.partition("/")[2] for name in names]


@pytest.mark.slow
def test_a_netlist_that_is_refused_is_in_the_merged_results(cluster):
    broken = cluster[0] / "netlists" / "mlp.yaml"
    broken.write_text(broken.read_text().replace("type: matmul", "type: matmull", 1))
    done = submit(cluster, 2)
    assert done.returncode == 1
    assert "3 netlists, 1 not passed\n  netlists/mlp.yaml" in done.stdout


def test_a_part_that_is_missing_is_told(tmp_path):
    command = [sys.executable, str(SLURM / "merge_results.py"), str(tmp_path), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"{tmp_path}: no results of part 1, 2 of 2\n")


def test_a_part_that_its_time_limit_ended_is_not_taken_for_whole(tmp_path):
    for part, not_run in ((1, 0), (2, 5)):
        (tmp_path / f"part-{part}.json").write_text(json.dumps({"cases": [], "seconds": 1, "not_run": not_run}))
    command = [sys.executable, str(SLURM / "merge_results.py"), str(tmp_path), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    text = f"{tmp_path}: part 2 of 2 was ended early, 5 of its netlists were not run\n"
    assert (done.returncode, done.stderr) == (2, text)


@pytest.mark.parametrize(
    ("code", "writes", "expected"), [(0, True, 0), (1, True, 0), (3, True, 0), (2, False, 2), (143, True, 143)]
)
def test_a_task_has_done_its_work_when_its_results_are_written(tmp_path, code, writes, expected):
    (tmp_path / "buda-emu").write_text(f"#!/bin/sh\n{'echo {} > results/part-1.json' if writes else ''}\nexit {code}\n")
    (tmp_path / "buda-emu").chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_ARRAY_TASK_COUNT": "1",
    }  # fmt: skip
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "part-1.json").write_text("{}")  # of an earlier job
    command = ["sh", str(SLURM / "test_part.sh"), "netlists", "results"]
    assert subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode == expected
