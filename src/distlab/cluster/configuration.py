"""The files of a cluster, in the temporary file system of its own that is mounted on /etc/slurm."""

import os
import pwd
import re
from collections.abc import Sequence
from pathlib import Path

from distlab.cluster.namespaces import LOGIN, MUNGE_SOCKET, STATE, checked
from distlab.cluster.network import address

CPUS_PER_NODE, GPUS_PER_NODE, MEGABYTES = 64, 8, 512_000  # as on many clusters; nothing of it need be there
LOGS = f"{STATE}/log"
SSH = f"{STATE}/ssh"

# Times in seconds. cred_expire is also how long a requeued job waits before it may start again. It must be longer than
# KillWait and two seconds: then srun kills what is left of the first attempt, and would kill the second one, too.
# slurmctld gives a node up after SlurmdTimeout without an answer, and ReturnToService takes it back when it answers.
_SLURM = f"""\
ClusterName=distlab
SlurmctldHost={LOGIN}({address(LOGIN)})
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
GresTypes=gpu
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

# The key of the cluster, and nothing is written into the user's ~/.ssh.
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


def write(root: Path, nodes: Sequence[str]) -> None:
    """Write all files; `root` is the cluster's / as this process sees it."""
    files = {
        "slurm.conf": slurm(nodes, pwd.getpwuid(os.geteuid()).pw_name),
        "gres.conf": f"Name=gpu File={STATE}/gpu[0-{GPUS_PER_NODE - 1}]\n",
        "cgroup.conf": cgroup(checked(["slurmd", "-V"])),
        "hosts": "127.0.0.1 localhost\n" + "".join(f"{address(node)} {node}\n" for node in (LOGIN, *nodes)),
        "ssh/ssh_config": _SSH_CLIENT,
        "ssh/sshd_config": _ssh_server(os.environ.get("PATH", os.defpath)),
    }
    # Slurm wants devices, and hands out their numbers; no user may make one, so that others are mounted there.
    files |= {f"gpu{number}": "" for number in range(GPUS_PER_NODE)}
    state = root / STATE[1:]
    for folder in ("log", "state", "ssh", *(f"{kind}.{node}" for kind in ("spool", "tmp") for node in nodes)):
        (state / folder).mkdir()
    for name, text in files.items():
        (state / name).write_text(text)
    (state / "munge.key").touch(mode=0o600)
    (state / "munge.key").write_bytes(os.urandom(128))
    if os.access("/etc/shadow", os.R_OK):  # sshd of an ordinary user does not read it either
        (state / "shadow").touch(mode=0o600)
        # sshd refuses an account that is locked, as root's is on many systems.
        text = re.sub("^root:!", "root:*", Path("/etc/shadow").read_text(), flags=re.MULTILINE)
        (state / "shadow").write_text(text)


def slurm(nodes: Sequence[str], user: str) -> str:
    """slurm.conf: one controller on the login node, and a partition `lab` of all nodes."""
    lines = [f"SlurmUser={user}", f"SlurmdUser={user}"]
    has = f"CPUs={CPUS_PER_NODE} RealMemory={MEGABYTES} Gres=gpu:{GPUS_PER_NODE}"
    lines += [f"NodeName={node} NodeAddr={address(node)} {has}" for node in nodes]
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


def _ssh_server(path: str) -> str:
    """sshd_config; commands are looked for on `path`, as in the shell that started the cluster.

    A shell of level 2 does not read the user's ~/.bashrc, which sshd would let it read again for each command: it may
    print, and set another PATH.
    """
    return _SSH_SERVER + f'SetEnv "PATH={path}" SLURM_CONF={STATE}/slurm.conf SHLVL=2\n'
