"""On which cores may each rank run? `mpirun -np 2 python cores.py`."""

from distlab import devices

from mpi4py import MPI

ranks = MPI.COMM_WORLD
cores = ranks.gather(devices.allowed_cores())
if ranks.rank == 0:
    print(*(f"rank {rank}: {own}" for rank, own in enumerate(cores)), sep=", ")
