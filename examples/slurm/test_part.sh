#!/bin/sh
# One task of a job array: tests its part of the netlists. Arguments: NETLISTS RESULTS (docs/run/clusters.md).
#SBATCH --job-name=buda-emu-test
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
set -u
part=$SLURM_ARRAY_TASK_ID
mkdir -p "$2"
rm -f "$2/part-$part.json"
buda-emu test "$1" --shard "$part/$SLURM_ARRAY_TASK_COUNT" -n "${SLURM_CPUS_PER_TASK:-1}" --quiet \
    --json "$2/part-$part.json" --junitxml "$2/part-$part.xml"
code=$?
# Netlists that do not pass make an exit code, which the merged results report: a task that has written its results has
# done its work, unless a signal ended it.
if [ "$code" -ge 128 ] || [ ! -s "$2/part-$part.json" ]; then
    exit "$code"
fi
