#!/bin/bash
# Two nodes for as long as you work; leave the shell with `exit` to give them back:
#   distlab cluster run -- notebooks/programs/15_clusters/slurm/interactive.sh
# In the shell, which is on the first node, each srun starts a program on both nodes, without a queue:
#   srun python notebooks/programs/15_clusters/train_multi_worker.py
# With arguments it runs that command on the first node instead of a shell.
set -euo pipefail
[ $# -gt 0 ] || set -- bash -i
# --overlap: the shell takes no CPU away from the programs that it starts. Without env they would, like the shell, be one
# task on one node: srun takes its defaults from these variables.
# At your site perhaps also: --partition=interactive --account=PROJECT --gpus-per-node=1
exec salloc --job-name=interactive --nodes=2 --ntasks-per-node=1 --time=00:30:00 \
    srun --overlap --nodes=1 --ntasks=1 --pty \
    env --unset=SLURM_NTASKS --unset=SLURM_NPROCS --unset=SLURM_NNODES "$@"
