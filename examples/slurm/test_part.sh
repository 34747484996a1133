#!/bin/sh
# One task of a job array: tests its part of the netlists. Arguments: NETLISTS RESULTS (docs/run/clusters.md).
#SBATCH --job-name=buda-emu-test
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
set -u
part=$SLURM_ARRAY_TASK_ID
mkdir -p "$2"
# A netlist that fails makes an exit code of 1, which the merged results report: the task itself has done its work.
buda-emu test "$1" --shard "$part/$SLURM_ARRAY_TASK_COUNT" -n "${SLURM_CPUS_PER_TASK:-1}" --quiet \
    --json "$2/part-$part.json" --junitxml "$2/part-$part.xml"
code=$?
[ "$code" -le 1 ] || exit "$code"
