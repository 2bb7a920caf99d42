"""Horovod's source: the release, checked by its digest, and the edits for today's TensorFlow and for many ranks."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from distlab.launch.horovod import VERSION

SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
_TENSORFLOW, _GLOO = "horovod/tensorflow/CMakeLists.txt", "third_party/gloo/gloo/CMakeLists.txt"
_LIBRARY = "add_library(${TF_TARGET_LIB} SHARED ${SOURCES} ${TF_SOURCES})\n"
_GLOO_LIBRARY = "add_library(gloo ${GLOO_STATIC_OR_SHARED} ${GLOO_SRCS})\n"
_UNITY = "UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE {}"


class NotBuilt(Exception):
    """Horovod could not be built or installed; the message is one sentence that says why."""


class Edit(NamedTuple):
    """One replacement in the release's source; `old` must stand in `file` exactly once."""

    file: str
    old: str
    new: str


EDITS = (
    # The optional XLA operations need headers that TensorFlow's package no longer carries.
    Edit(_TENSORFLOW, 'list(APPEND TF_SOURCES "${PROJECT_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc")\n', ""),
    # The backend must come from the Keras that TensorFlow uses.
    Edit("horovod/tensorflow/keras/__init__.py", "    from keras import backend as K\n", "    K = keras.backend\n"),
    Edit("horovod/tensorflow/keras/callbacks.py", "    from keras import backend as K\n", "    K = keras.backend\n"),
    # All ranks connect at the same time: Python's queue of 5 connections drops some, which then lose seconds.
    Edit(
        "horovod/runner/http/http_server.py",
        "class RendezvousHTTPServer(socketserver.ThreadingMixIn, HTTPServer, object):\n",
        "class RendezvousHTTPServer(socketserver.ThreadingMixIn, HTTPServer, object):\n"
        "    request_queue_size = 1024\n\n",
    ),
    # The ranks over Gloo must be known for the warning of a rank that makes another call ("Missing ranks").
    Edit("horovod/common/gloo/gloo_controller.cc", "global_ranks_.reserve(size_);\n", "global_ranks_.resize(size_);\n"),
    # AutoGraph would translate Horovod's Python, which has no loop or condition on tensors, once more in each rank.
    Edit("horovod/tensorflow/util.py", "    return tf.function(f)\n", "    return tf.function(f, autograph=False)\n"),
    # Gloo would be compiled twice, and only the build for C++17 is linked.
    Edit("CMakeLists.txt", "subdirectory(third_party/gloo)\n", "subdirectory(third_party/gloo EXCLUDE_FROM_ALL)\n"),
    # Most of the time goes into headers, which several files can share, and into information for debuggers. One file
    # of Gloo, which nothing here uses, does not go with the others.
    Edit(_GLOO, '  "${CMAKE_CURRENT_SOURCE_DIR}/allreduce_local.cc"\n', ""),
    Edit(_GLOO, _GLOO_LIBRARY, f"{_GLOO_LIBRARY}set_target_properties(gloo PROPERTIES {_UNITY.format(20)})\n"),
    Edit(
        _TENSORFLOW,
        _LIBRARY,
        # Nor may the library be searched for in a folder of the build, which somebody else could make later.
        f"{_LIBRARY}set_target_properties(${{TF_TARGET_LIB}} PROPERTIES {_UNITY.format(8)} SKIP_BUILD_RPATH TRUE)\n",
    ),
    Edit(
        "CMakeLists.txt",
        'string(REPLACE "-O2" "-O3" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")\n',
        'set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG")\n',
    ),
)


def unpack(cache: Path, folder: Path, edits: Sequence[Edit], output: TextIO) -> Path:
    """The release's edited source in `folder`; its archive is kept in `cache`.

    Raises CalledProcessError if the archive cannot be fetched, ValueError if an edit does not fit.
    """
    archive = cache / f"horovod-{VERSION}.tar.gz"
    if not archive.exists():
        requirement = folder / "horovod.txt"
        requirement.write_text(f"horovod=={VERSION} --hash=sha256:{SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=horovod", "--no-build-isolation"]
        command += ["--require-hashes", "--dest", str(folder), "--requirement", str(requirement)]
        subprocess.run(command, check=True, stdout=output, stderr=output)
        shutil.move(folder / archive.name, archive)
    shutil.unpack_archive(archive, folder)
    source = folder / f"horovod-{VERSION}"
    for edit in edits:
        text = (source / edit.file).read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file} of Horovod {VERSION} does not have the text {edit.old!r} once.")
        (source / edit.file).write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    return source
