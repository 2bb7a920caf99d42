"""A program for the launcher whose processes do what a test tells them, without TensorFlow's slow start."""

import time
from contextlib import suppress
from pathlib import Path

import psutil

NUMBERED_BY = Path("/proc/self/ns/pid")
_SECONDS_OF_DOUBT = 2  # as exactly as the system tells when a process began

# Arguments: NUMBER=ACT,ACT,… for a worker or rank, NAME=… for other tasks; acts are done in order.
PROGRAM = """
import json, os, signal, socket, subprocess, sys, time
from pathlib import Path

task = json.loads(os.environ["TF_CONFIG"])["task"] if "TF_CONFIG" in os.environ else {}
RANKS = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK")
rank = next((os.environ[name] for name in RANKS if name in os.environ), "")
kind, number = task.get("type", "worker"), str(task.get("index", rank))
name = number if kind == "worker" else kind

def note(who, pid):
    # On a node of a cluster the numbers of processes are the node's own.
    namespace = Path("/proc/self/ns/pid")
    numbered_by = namespace.stat().st_ino if namespace.exists() else 0
    Path(__file__).with_name(f"{who}.{pid}.{numbered_by}.pid").touch()

note(f"{kind}{number}", os.getpid())

def act(what):
    if what == "listen":
        address = json.loads(os.environ["TF_CONFIG"])["cluster"][kind][int(number)]
        holder = socket.socket()
        holder.bind(("", int(address.rpartition(":")[2])))
        holder.listen()
        held.append(holder)
    elif what == "open":  # as the strategy or Horovod would
        act("listen") if task else held.append(socket.create_server(("", 0)))
    elif what == "meet":  # waits for a peer that loses this process later; the launcher only looks who listens
        while True:
            held.append(held[0].accept()[0])
            if held[-1].recv(1):
                break
    elif what.startswith("lose"):  # meets a worker and loses it
        host, _, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][int(what[4:])].partition(":")
        while True:
            try:
                peer = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        peer.sendall(b"x")
        if not peer.recv(1):
            raise ConnectionResetError("Connection reset by peer")
    elif what == "wait":
        time.sleep(600)
    elif what == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif what == "child":
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        note(f"child{number}", child.pid)
    elif what == "orphan":
        subprocess.Popen(["sleep", "600"])
    elif what.startswith("lines"):
        for line in range(int(what[5:])):
            print(f"line {line} of {kind} {number}")
    elif what.startswith("wide"):
        print("w" * int(what[4:]))
    elif what.startswith("exit"):
        sys.exit(int(what[4:]))
    elif what == "raise":
        raise ValueError("the shapes do not fit")
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what.startswith("show:"):
        print(what[5:], "is", os.environ.get(what[5:]))
    elif what.startswith("say:"):
        print(what[4:])
    elif what == "partial":
        print("no newline at the end", end="")
    elif what == "bytes":
        sys.stdout.buffer.write(b"\\xff\\xfe text\\n")
    elif what == "errors":
        print("to standard error", file=sys.stderr)
    elif what == "notes":
        print("I0000 00:00:1795179217.033885   18023 port.cc:153] oneDNN custom operations are on.", file=sys.stderr)
        print("WARNING: All log messages before absl::InitializeLog() is called are written to STDERR", file=sys.stderr)
    elif what == "outlive1":  # waits until worker 1 has ended, and notes it as TensorFlow does
        while not (files := list(Path(__file__).parent.glob("worker1.*.pid"))):
            time.sleep(0.02)
        while Path("/proc", files[0].name.split(".")[1]).exists():
            time.sleep(0.02)
        time.sleep(2)  # until the launcher has taken note too
        print("E0000 00:00:1795679299.385806   15059 base_collective_executor.cc:252] StartAbort "
              "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):")
        print("/job:worker/replica:0/task:1")
        print("The tasks have crashed. Check the task logs for an earlier error, or scheduler events to debug further.")
    elif what == "mpi":
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
    elif what == "result":
        Path(sys.argv[sys.argv.index("--result") + 1]).write_text(json.dumps({"loss": 0.5, "from": number}))
    else:
        raise SystemExit(f"unknown act {what}")

held = []
for argument in sys.argv[1:]:
    who, _, acts = argument.partition("=")
    if who in (name, "all"):
        for what in acts.split(","):
            act(what)
"""


class Launched:
    """The program as a file, and the processes that it has been run as."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM)

    def pids(self) -> list[int]:
        return [int(file.name.split(".")[1]) for file in self.folder.glob("*.pid")]

    def left(self) -> list[int]:
        """Those of its processes that are alive, as far as they run on this machine and not on a cluster's node.

        A number of a node, or one that the system has given to another process since, would name a stranger.
        """
        own = NUMBERED_BY.stat().st_ino if NUMBERED_BY.exists() else 0
        alive = []
        for file in self.folder.glob(f"*.*.{own}.pid"):
            with suppress(psutil.Error):
                process = psutil.Process(int(file.name.split(".")[1]))
                noted = file.stat().st_mtime + _SECONDS_OF_DOUBT
                if process.create_time() < noted and process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process.pid)
        return alive

    def wait_for(self, count: int, seconds: float = 300) -> None:
        """Until `count` of its processes have been started."""
        end = time.monotonic() + seconds
        while len(self.pids()) < count:
            assert time.monotonic() < end, f"only {len(self.pids())} of {count} processes were started"
            time.sleep(0.05)

    def gone_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.left():
                return True
            time.sleep(0.05)
        return not self.left()
