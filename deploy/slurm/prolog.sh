#!/bin/sh
# Slurm Prolog, as root on each node: says which GPUs a job was given, one file a GPU, one job id a line.
# dcgm-exporter reads the same files. It never fails a job.
folder=${FLOPWATCH_JOB_FILES:-/run/flopwatch/jobs}
job=${SLURM_JOB_ID:-}
case $job in '' | *[!0-9]*) exit 0 ;; esac
mkdir -p "$folder" 2>/dev/null && chmod 0755 "$folder" || exit 0
for gpu in $(printf '%s' "${SLURM_JOB_GPUS:-}" | tr ',' ' '); do
  case $gpu in *[!0-9]*) continue ;; esac
  grep -qx "$job" "$folder/$gpu" 2>/dev/null || printf '%s\n' "$job" >>"$folder/$gpu"
done
exit 0
