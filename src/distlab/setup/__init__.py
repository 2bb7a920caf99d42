"""Set-up of a machine: the doctor, Horovod's wheel, the other frameworks."""
