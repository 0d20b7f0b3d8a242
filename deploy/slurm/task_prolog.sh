#!/bin/sh
# Slurm TaskProlog, as the job's user: where the agent may not read what the user may (a root-squashed file system),
# this hands the job's output to the agent. Slurm's own lines on standard output set the task's environment.
# slurm.conf: TaskProlog=/etc/slurm/task_prolog.sh
flopwatch=${FLOPWATCH:-/opt/flopwatch/bin/flopwatch}
[ "${SLURM_PROCID:-0}" = 0 ] && [ -x "$flopwatch" ] || exit 0
[ "${FLOPWATCH_TAIL:-0}" = 1 ] || exit 0 # a job asks for it: sbatch --export=ALL,FLOPWATCH_TAIL=1
output=${SLURM_JOB_STDOUT:-${SLURM_SUBMIT_DIR:-.}/slurm-${SLURM_JOB_ID:-0}.out}
"$flopwatch" tail --pid "$PPID" "$output" >/dev/null 2>&1 &
exit 0
