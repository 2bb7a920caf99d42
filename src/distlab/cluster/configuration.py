"""The text of every configuration file of the cluster."""

import re
from collections.abc import Sequence

from distlab.cluster.layout import (
    CPUS_PER_NODE,
    LOGIN,
    LOGIN_ADDRESS,
    LOGS,
    MUNGE_SOCKET,
    SSH,
    STATE,
    address,
)

# Times in seconds. cred_expire is also how long a requeued job waits before it may start again. It must be longer than
# KillWait and two seconds: then srun kills what is left of the first attempt, and would kill the second one, too.
# slurmctld gives a node up after SlurmdTimeout without an answer, and ReturnToService takes it back when it answers.
_SLURM = f"""\
ClusterName=distlab
SlurmctldHost={LOGIN}({LOGIN_ADDRESS})
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={MUNGE_SOCKET},cred_expire=10
StateSaveLocation={STATE}/state
SlurmdSpoolDir={STATE}/spool.%n
SlurmctldPidFile={STATE}/slurmctld.pid
SlurmdPidFile={STATE}/slurmd.%n.pid
SlurmctldLogFile={LOGS}/slurmctld.log
SlurmdLogFile={LOGS}/slurmd.%n.log
# Each node's own: tasks of one job on two nodes make files of the same name there.
TmpFS={STATE}/tmp.%n
JobCompType=jobcomp/filetxt
JobCompLoc={LOGS}/jobs.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,batch_sched_delay=1
PriorityType=priority/basic
ReturnToService=2
EnforcePartLimits=ALL
SlurmdTimeout=15
KillWait=6
JobRequeue=1
RequeueExit=85
MinJobAge=3600
SlurmdParameters=config_overrides
# Slurm's own limits would let each crash leave a core file in the user's folder.
PropagateResourceLimits=CORE
MailProg=/bin/true
"""

_SSH_CLIENT = f"""\
IdentityFile {SSH}/user_key
IdentitiesOnly yes
GlobalKnownHostsFile {SSH}/known_hosts
UserKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""

_SSH_SERVER = f"""\
HostKey {SSH}/host_key
AuthorizedKeysFile {SSH}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintLastLog no
PrintMotd no
MaxStartups 100
"""


def slurm(nodes: Sequence[str], user: str) -> str:
    """slurm.conf: one controller on the login node, and a partition `lab` of all nodes."""
    lines = [f"SlurmUser={user}", f"SlurmdUser={user}"]
    lines += [f"NodeName={node} NodeAddr={address(node)} CPUs={CPUS_PER_NODE} RealMemory=4000" for node in nodes]
    lines += [f"PartitionName=lab Nodes={','.join(nodes)} Default=YES DefaultTime=01:00:00 MaxTime=24:00:00"]
    return _SLURM + "\n".join(lines) + "\n"


def cgroup(version: str) -> str:
    """cgroup.conf for a Slurm whose slurmd calls itself `version`: nothing is limited by control groups.

    Otherwise slurmd asks systemd for a group, which it cannot reach, and ends. Before version 24.05 nothing can be
    disabled; there the old plugin, which nobody asks for anything, is as good.
    """
    match = re.search(r"(\d+)\.(\d+)", version)
    can_be_disabled = match is not None and (int(match[1]), int(match[2])) >= (24, 5)
    return f"CgroupPlugin={'disabled' if can_be_disabled else 'cgroup/v1'}\n"


def hosts(nodes: Sequence[str]) -> str:
    """/etc/hosts, the same on every node."""
    return "127.0.0.1 localhost\n" + "".join(f"{address(node)} {node}\n" for node in (LOGIN, *nodes))


def known_hosts(nodes: Sequence[str], public_key: str) -> str:
    """Ssh's list of hosts: all nodes have the same key."""
    return "".join(f"{node},{address(node)} {public_key}\n" for node in nodes)


def ssh_client() -> str:
    """ssh_config: log in to a node with the key of the cluster, and write nothing into the user's ~/.ssh."""
    return _SSH_CLIENT


def ssh_server(path: str) -> str:
    """sshd_config; commands are looked for on `path`, as in the shell that started the cluster.

    A shell of level 2 does not read the user's ~/.bashrc, which sshd would let it read again for each command: it may
    print, and set another PATH.
    """
    words = path if '"' not in path else "/usr/bin:/bin"
    return _SSH_SERVER + f'SetEnv "PATH={words}" SLURM_CONF={STATE}/slurm.conf SHLVL=2\n'
