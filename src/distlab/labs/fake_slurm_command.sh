#!/bin/sh
# Stands for srun, python, scontrol and others while a student's job script runs: notes how it was called.

# For srun some variables are options, before those of the call.
if [ "${0##*/}" = srun ]; then
    set -- ${SLURM_KILL_BAD_EXIT:+"--kill-on-bad-exit=$SLURM_KILL_BAD_EXIT"} ${SLURM_WAIT:+"--wait=$SLURM_WAIT"} \
        ${SRUN_CPUS_PER_TASK:+"--cpus-per-task=$SRUN_CPUS_PER_TASK"} "$@"
fi

# One `printf` per call: what runs in the background at the same time does not mix.
printf '%s\0' "${0##*/}" "$@" END >> "$FAKE_FOLDER/record"

# The file of a program holds the status with which it ends.
case "${0##*/}" in srun | python | python3 | mpirun | horovodrun)
    for word in $*; do
        case "$word" in *.py)
            if read -r status < "$FAKE_FOLDER/work/${word##*/}"; then exit "$status"; fi
            exit 2
        esac
    done
esac
if [ "${0##*/} $1 $2" = "scontrol show hostnames" ]; then printf 'node%s\n' $FAKE_NODES; fi
exit 0
