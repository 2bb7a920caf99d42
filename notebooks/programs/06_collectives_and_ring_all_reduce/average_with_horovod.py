"""Average an array over all ranks with Horovod.

On a laptop, on two hosts with mpirun, and under Slurm:

    horovodrun -np 2 --gloo python average_with_horovod.py
    mpirun -np 8 -H host0:4,host1:4 python average_with_horovod.py
    srun --ntasks=8 --mpi=pmix python average_with_horovod.py
"""

import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
gradient = tf.fill([3], hvd.rank() + 1.0)
mean = hvd.allreduce(gradient)  # op=hvd.Average unless told otherwise
print(f"rank {hvd.rank()} of {hvd.size()}: own {gradient.numpy()}, mean {mean.numpy()}", flush=True)
