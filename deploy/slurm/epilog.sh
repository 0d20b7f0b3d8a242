#!/bin/sh
# Slurm Epilog, as root on each node: takes the job out of the files of its GPUs. It never drains a node.
folder=${FLOPWATCH_JOB_FILES:-/run/flopwatch/jobs}
job=${SLURM_JOB_ID:-}
case $job in '' | *[!0-9]*) exit 0 ;; esac
for file in "$folder"/*; do
  [ -f "$file" ] || continue
  grep -qx "$job" "$file" || continue
  grep -vx "$job" "$file" >"$folder/.$job" || :
  mv "$folder/.$job" "$file"
done
exit 0
