"""A program for the launcher whose processes do what a test tells them, without TensorFlow's slow start."""

import time
from contextlib import suppress
from pathlib import Path

import psutil

# Arguments: NUMBER=ACT,ACT,… for a worker or rank, NAME=… for other tasks, all=…; acts are done in order.
PROGRAM = """
import json, os, signal, socket, subprocess, sys, time
from pathlib import Path

task = json.loads(os.environ["TF_CONFIG"])["task"] if "TF_CONFIG" in os.environ else {}
rank = next((os.environ[name] for name in ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "RANK") if name in os.environ), "")
kind, number = task.get("type", "worker"), str(task.get("index", rank))
name = number if kind == "worker" else kind

def note(pid):
    Path(__file__).with_name(f"{pid}.pid").touch()

note(os.getpid())

def act(what):
    if what == "listen":  # as the strategy would
        address = json.loads(os.environ["TF_CONFIG"])["cluster"][kind][int(number)]
        held.append(socket.socket())
        held[-1].bind(("", int(address.rpartition(":")[2])))
        held[-1].listen()
    elif what == "wait":
        time.sleep(600)
    elif what == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    elif what == "child":  # in a session of its own, with an empty environment
        note(subprocess.Popen(["sleep", "600"], start_new_session=True, env={}, stdout=subprocess.DEVNULL).pid)
    elif what == "orphan":  # holds the output open
        note(subprocess.Popen(["sleep", "600"]).pid)
    elif what.startswith("lines"):
        for line in range(int(what[5:])):
            print(f"line {line} of {kind} {number}")
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
        return [int(file.stem) for file in self.folder.glob("*.pid")]

    def left(self) -> list[int]:
        """Those of its processes that are alive."""
        alive = []
        for pid in self.pids():
            with suppress(psutil.Error):
                if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                    alive.append(pid)
        return alive

    def wait_for(self, count: int, seconds: float = 300) -> None:
        """Until `count` of its processes have been started."""
        end = time.monotonic() + seconds
        while len(self.pids()) < count:
            assert time.monotonic() < end, f"only {len(self.pids())} of {count} processes were started"
            time.sleep(0.05)

    def gone_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.left():
            time.sleep(0.05)
        return not self.left()
