"""Add an array over all ranks with MPI.

On a laptop, on two hosts with mpirun, and under Slurm:

    mpirun -np 2 python sum_with_mpi.py
    mpirun -np 8 -H host0:4,host1:4 python sum_with_mpi.py
    srun --ntasks=8 --mpi=pmix python sum_with_mpi.py
"""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
gradient = np.full(3, comm.Get_rank() + 1.0)
total = np.empty_like(gradient)
comm.Allreduce(gradient, total, op=MPI.SUM)
print(f"rank {comm.Get_rank()} of {comm.Get_size()}: own {gradient}, sum {total}", flush=True)
