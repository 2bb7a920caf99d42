#!/bin/bash
# Two nodes for as long as you work; leave the shell with `exit` to give them back:
#   notebooks/programs/15_clusters/pbs/interactive.sh
# In the shell, which is on the first node, `cd "$PBS_O_WORKDIR"`; then mpirun starts a program on both nodes:
#   mpirun -np 2 --hostfile "$PBS_NODEFILE" -x PATH python notebooks/programs/15_clusters/train_horovod.py
# At your site perhaps also: -q interactive -P PROJECT
set -euo pipefail
exec qsub -I -N interactive -l select=2:ncpus=2:mpiprocs=1 -l place=scatter -l walltime=00:30:00 "$@"
