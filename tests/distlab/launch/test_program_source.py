import importlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distlab import launch
from distlab.launch.program_source import (
    begins_with,
    differs_from_import,
    hidden_package,
    modules_to_copy,
    needs_tf_config,
    variables_set,
)

Start = Callable[..., launch.LaunchedRun]

STRATEGY = "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
PROGRAMS = Path(__file__).parents[3] / "notebooks/programs"


def program(folder: Path, text: str) -> Path:
    file = folder / "train.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize("start", [launch.mpirun, launch.horovodrun, launch.torchrun, launch.srun])
def test_workers_that_would_get_no_tf_config_are_not_started(start: Start, tmp_path: Path) -> None:
    with pytest.raises(launch.LaunchError, match=r"^train\.py trains with MultiW.* each of 3 ranks would train alone"):
        start(program(tmp_path, STRATEGY), ranks=3)


@pytest.mark.parametrize(
    "name", ["07_multi_worker/minimal.py", "07_multi_worker/train.py", "13_fault_tolerance/train.py"]
)
def test_the_chapters_programs_get_no_tf_config_from_mpirun(name: str) -> None:
    assert needs_tf_config(PROGRAMS / name, "mpirun")


def test_a_program_that_makes_its_tf_config_of_what_the_starter_says_needs_none(tmp_path: Path) -> None:
    of_slurm = "from distlab import cluster_spec\nos.environ['TF_CONFIG'] = cluster_spec.from_slurm()\n"
    by_hand = "rank = os.environ['{}']\n"
    cases = {
        of_slurm: {"srun"},
        "resolver = tf.distribute.cluster_resolver.SlurmClusterResolver()\n": {"srun"},
        by_hand.format("SLURM_PROCID"): {"srun"},
        by_hand.format("OMPI_COMM_WORLD_RANK"): {"mpirun", "srun"},
        by_hand.format("TF_CONFIG"): set(),
        '"""Under Slurm: set TF_CONFIG of SLURM_PROCID."""\n': set(),
    }
    for lines, helped in cases.items():
        file = program(tmp_path, lines + STRATEGY)
        assert {starter for starter in ("mpirun", "srun") if not needs_tf_config(file, starter)} == helped, lines


@pytest.mark.slow
def test_a_program_that_gets_tf_config_from_who_launches_it_needs_none(tmp_path: Path) -> None:
    file = program(tmp_path, "import os\nprint(os.environ['TF_CONFIG'])\nif 0:\n    MultiWorkerMirroredStrategy()\n")
    run = launch.mpirun(file, environment={"TF_CONFIG": "{}"}, echo=False, seconds=60)
    assert [run.output[f"rank {rank}"] for rank in range(2)] == ["{}", "{}"]


def test_a_program_that_trains_another_way_needs_no_tf_config(tmp_path: Path) -> None:
    for way in ("horovod.tensorflow", "mpi4py.MPI"):
        assert not needs_tf_config(program(tmp_path, f"def main():\n    import {way}\n{STRATEGY}"), "mpirun")
    assert not needs_tf_config(program(tmp_path, "import tensorflow as tf\n"), "mpirun")
    assert not needs_tf_config(program(tmp_path, "def (:\n"), "mpirun")


def test_the_programs_of_the_labs_that_read_slurms_variables_need_no_tf_config() -> None:
    for name in (
        "13_fault_tolerance/train.py",
        "13_fault_tolerance/late_worker.py",
        "15_clusters/train_multi_worker.py",
    ):
        assert not needs_tf_config(PROGRAMS / name, "srun")


def test_the_variables_are_found_that_a_program_and_its_modules_set(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        'from os import environ\nenviron |= {"A": "1"}\nenviron.update({"B": "2"}, C="3")\nenviron.setdefault("D", "4")'
    )
    (tmp_path / "train.py").write_text(
        'import os, settings\nos.environ["E"] = "5"\nos.putenv("F", "6")\nname = os.environ["G"]\nother["H"] = "8"'
    )
    assert variables_set(tmp_path / "train.py") == set("ABCDEF")


def test_only_an_import_that_always_happens_is_one_that_the_program_begins_with(tmp_path: Path) -> None:
    assert begins_with(program(tmp_path, "from horovod import tensorflow\n"), "horovod")
    assert not begins_with(program(tmp_path, "def train():\n    import horovod\n"), "horovod")


@pytest.mark.parametrize(
    ("name", "package", "lines"),
    [
        ("horovod", "horovod", "def train():\n    import horovod.tensorflow\n"),
        ("numpy", "numpy", "import tensorflow\n"),
        ("mpi4py", "mpi4py", "from mpi4py import MPI\n"),
        ("scipy", "scipy", "from scipy import signal\n"),
        ("random", "random", "import random\n"),
    ],
)
def test_a_program_with_the_name_of_a_package_that_it_needs_is_refused(
    name: str, package: str, lines: str, tmp_path: Path
) -> None:
    file = program(tmp_path, lines).rename(tmp_path / f"{name}.py")
    with pytest.raises(launch.LaunchError, match=f"^The file {file} hides the package {package}: give it another name"):
        launch.horovodrun(file)


def test_a_file_beside_the_program_with_the_name_of_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").touch()
    with pytest.raises(launch.LaunchError, match=r"^The file .*tensorflow\.py hides the package tensorflow"):
        launch.tensorflow(program(tmp_path, STRATEGY))


def test_a_name_that_hides_nothing_is_free_to_use(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("import train\n")  # in a circle, which works
    assert hidden_package(program(tmp_path, "import helper, yaml\n")) is None
    (tmp_path / "yaml.py").touch()  # on purpose: the program imports this one
    assert hidden_package(tmp_path / "train.py") is None
    assert hidden_package(program(tmp_path, "print(1)\n").rename(tmp_path / "random.py")) is None


def test_a_program_that_was_copied_without_its_modules_is_told_which_it_needs(tmp_path: Path) -> None:
    folder = PROGRAMS / "13_fault_tolerance"
    copy = Path(shutil.copy(folder / "train.py", tmp_path))
    needs = "what is beside it in the course's folder notebooks/programs/13_fault_tolerance: copy"
    with pytest.raises(launch.LaunchError) as refused:
        launch.tensorflow(copy, "--backup", tmp_path / "backup")
    assert str(refused.value) == f"{copy} needs {needs} backup_folder.py, faults.py, whole_checkpoints.py too."
    for name in ("backup_folder.py", "faults.py"):
        shutil.copy(folder / name, tmp_path)
    with pytest.raises(launch.LaunchError, match=re.escape(f"{needs} whole_checkpoints.py too.")):
        launch.tensorflow(copy, "--backup", tmp_path / "backup")


def test_a_copy_with_another_name_is_told_all_that_its_modules_need(tmp_path: Path) -> None:
    copy = Path(shutil.copy(PROGRAMS / "15_clusters" / "train_ray.py", tmp_path / "my_own.py"))
    assert modules_to_copy(copy) == ("notebooks/programs/15_clusters", ["network.py", "train_multi_worker.py"])


def test_a_program_that_finds_the_course_s_modules_is_left_alone(tmp_path: Path) -> None:
    folder = PROGRAMS / "15_clusters"
    file = program(tmp_path, "import network, torch_of_another_environment\n")
    assert modules_to_copy(file) == ("notebooks/programs/15_clusters", ["network.py"])
    assert modules_to_copy(file, [str(folder)]) is None
    assert modules_to_copy(program(tmp_path, f"import sys\nsys.path.append({str(folder)!r})\nimport network\n")) is None
    assert modules_to_copy(program(tmp_path, "try:\n    import network\nexcept ImportError:\n    pass\n")) is None


@pytest.mark.slow
def test_every_program_of_the_course_is_whole_and_hides_nothing() -> None:
    for file in PROGRAMS.glob("*/*.py"):
        assert (hidden_package(file), modules_to_copy(file)) == (None, None), file


def test_a_program_that_was_edited_after_its_import_is_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited, other = tmp_path / "edited_program.py", tmp_path / "other_program.py"
    edited.write_text("SEED = 13\n")
    other.write_text("SEED = 13\n")
    assert not differs_from_import(edited)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("edited_program")
    monkeypatch.setitem(sys.modules, "edited_program", sys.modules["edited_program"])
    for file in (edited, other):
        assert not differs_from_import(file)
        file.write_text("SEED = 14\n")
    assert differs_from_import(edited)
    assert not differs_from_import(other)
