"""Set-up of a machine: the environment, Horovod's wheel, the other frameworks, the doctor."""
