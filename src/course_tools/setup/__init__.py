"""Set-up of a machine: the doctor, the build of Horovod's wheel, the environments of the other frameworks.

Begin with `command`, which has the subcommands.
"""
