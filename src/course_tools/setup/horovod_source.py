"""Horovod's source: the release, checked by its digest, with a few edits for today's TensorFlow and for many ranks."""

import hashlib
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from distlab.launch.horovod import VERSION

SOURCE_SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"


@dataclass(frozen=True)
class Edit:
    """One replacement in the release's source; `old` must stand in `file` exactly once."""

    file: str
    old: str
    new: str
    why: str


EDITS = (
    Edit(
        "horovod/tensorflow/CMakeLists.txt",
        'list(APPEND TF_SOURCES "${PROJECT_SOURCE_DIR}/horovod/tensorflow/xla_mpi_ops.cc")\n',
        "",
        "the optional XLA operations need headers that TensorFlow's package no longer carries",
    ),
    Edit(
        "horovod/tensorflow/keras/__init__.py",
        "    from keras import backend as K\n",
        "    K = keras.backend\n",
        "the backend must come from the Keras that TensorFlow uses",
    ),
    Edit(
        "horovod/tensorflow/keras/callbacks.py",
        "    from keras import backend as K\n",
        "    K = keras.backend\n",
        "the backend must come from the Keras that TensorFlow uses",
    ),
    Edit(
        "horovod/runner/http/http_server.py",
        "class RendezvousHTTPServer(socketserver.ThreadingMixIn, HTTPServer, object):\n",
        "class RendezvousHTTPServer(socketserver.ThreadingMixIn, HTTPServer, object):\n"
        "    request_queue_size = 1024\n\n",
        "all ranks connect at the same time: Python's queue of 5 connections drops some, which then lose seconds",
    ),
    Edit(
        "horovod/tensorflow/util.py",
        "    return tf.function(f)\n",
        "    return tf.function(f, autograph=False)\n",
        "AutoGraph would translate Horovod's Python, which has no loop or condition on tensors, once more in each rank",
    ),
)

# More for a Horovod with NCCL; the default wheel's name does not depend on them.
NCCL_EDITS = (
    Edit(
        "CMakeLists.txt",
        "    add_subdirectory(third_party/gloo)\n",
        "    add_subdirectory(third_party/gloo EXCLUDE_FROM_ALL)\n",
        "Gloo would be compiled twice, and only the build for C++17 is linked",
    ),
    Edit(
        "horovod/common/ops/cuda/CMakeLists.txt",
        "set(CMAKE_CUDA_STANDARD 11)\n",
        "set(CMAKE_CUDA_STANDARD 17)\n",
        "the headers of today's CUDA need C++17",
    ),
    Edit(
        "horovod/common/ops/cuda/CMakeLists.txt",
        "add_library(compatible_horovod_cuda_kernels cuda_kernels.cu)\n",
        "add_library(compatible_horovod_cuda_kernels EXCLUDE_FROM_ALL cuda_kernels.cu)\n",
        "kernels for the C++ library of before 2015, which this TensorFlow does not use, take as long again to compile",
    ),
    Edit(
        "horovod/tensorflow/mpi_ops.cc",
        """// Forward declaration of AsGpuStreamValue
namespace stream_executor {
namespace gpu {
GpuStreamHandle AsGpuStreamValue(Stream* stream);
} // namespace stream_executor
} // namespace gpu
#if TENSORFLOW_VERSION >= 2011000000
#include "tensorflow/compiler/xla/stream_executor/stream.h"
#else
#include "tensorflow/stream_executor/stream.h"
#endif // TENSORFLOW_VERSION >= 2011000000
""",
        """#include "xla/stream_executor/stream.h"
namespace stream_executor {
namespace gpu {
inline GpuStreamHandle AsGpuStreamValue(Stream* stream) {
  return reinterpret_cast<GpuStreamHandle>(stream->platform_specific_handle().stream);
}
} // namespace gpu
} // namespace stream_executor
""",
        "TensorFlow exports this function no longer; a stream says itself which handle CUDA knows it by",
    ),
    Edit(
        "horovod/tensorflow/CMakeLists.txt",
        "target_link_libraries(${TF_TARGET_LIB} ${LINKER_LIBS} ${TF_LINKER_LIBS})\n",
        """target_link_libraries(${TF_TARGET_LIB}
    -Wl,--whole-archive ${CUDA_cudart_static_LIBRARY} -Wl,--no-whole-archive ${CMAKE_DL_LIBS} rt
    ${LINKER_LIBS} ${TF_LINKER_LIBS})
set_target_properties(${TF_TARGET_LIB} PROPERTIES SKIP_BUILD_RPATH TRUE)
""",
        "the whole CUDA runtime must be inside: TensorFlow's libraries export stubs of the same names, of "
        "another CUDA, which win over an archive that is taken in parts; and no folder of the build may be searched",
    ),
)


def download_source(folder: Path, output: TextIO) -> Path:
    """The release's archive from the package index, its digest checked by pip against SOURCE_SHA256."""
    requirement = folder / "horovod.txt"
    requirement.write_text(f"horovod=={VERSION} --hash=sha256:{SOURCE_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=horovod", "--no-build-isolation"]
    command += ["--require-hashes", "--dest", str(folder), "--requirement", str(requirement)]
    subprocess.run(command, check=True, stdout=output, stderr=output)
    return folder / f"horovod-{VERSION}.tar.gz"


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source archive into `folder`; return the folder of its sources. Raises ValueError on a wrong digest."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SOURCE_SHA256:
        raise ValueError(f"{archive.name} has SHA-256 {digest}, expected {SOURCE_SHA256}")
    with tarfile.open(archive) as sources:
        sources.extraction_filter = getattr(tarfile, "data_filter", None)  # unknown to Python before 3.11.4
        sources.extractall(folder)
    return folder / f"horovod-{VERSION}"


def apply_edits(source: Path, edits: tuple[Edit, ...] = EDITS) -> None:
    """Make each edit in the unpacked source. Raises ValueError unless its text stands there exactly once."""
    for edit in edits:
        file = source / edit.file
        text = file.read_text(encoding="utf-8")
        if (count := text.count(edit.old)) != 1:
            raise ValueError(f"{edit.file}: the text to replace stands {count} times there, not once: {edit.old!r}")
        file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
