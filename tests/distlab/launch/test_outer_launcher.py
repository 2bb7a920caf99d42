"""Other launchers in front of `distlab launch`, and allocations of Slurm, in which it runs once, for real."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import cluster, launch
from distlab.runtime import environment, processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, until

environment.apply()  # puts this environment's mpirun on the path
pytestmark = [pytest.mark.slow]

LAUNCH = [sys.executable, "-m", "course_tools", "launch", "nowhere.py"]
GOES_ON = "There is no program nowhere.py"
REFUSED = "{} has started 2 launchers, each of which would run the whole job: leave out {} in front of `distlab launch`"


@pytest.mark.parametrize(
    "outer",
    [
        pytest.param(["mpirun"], id="mpirun"),
        pytest.param(["horovodrun", "--gloo"], id="horovodrun", marks=pytest.mark.long),
    ],
)
def test_a_launcher_in_front_of_the_launcher_is_refused(outer: list[str]) -> None:
    if outer[0] == "horovodrun" and launch.horovod_problem():
        pytest.skip("needs Horovod")
    finished = processes.run([*outer, "-np", "2", *LAUNCH], 300)
    assert finished.status != 0
    assert REFUSED.format(outer[0], outer[0]) in finished.output
    assert GOES_ON not in finished.output


def test_variables_that_another_launcher_has_left_refuse_nothing() -> None:
    left = dict.fromkeys(("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE", "SLURM_STEP_NUM_TASKS"), "2")
    assert processes.run(LAUNCH, 300, env=os.environ | left).output.startswith(GOES_ON)


def test_the_only_rank_of_mpirun_launches_ranks_of_its_own(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from mpi4py.MPI import COMM_WORLD as all\nprint(all.allreduce(all.rank + 1))\n")
    words = [*LAUNCH[:-1], "--with", "mpirun", "--workers", "2", str(program)]
    finished = processes.run(["mpirun", "-np", "1", *words], 300)
    assert finished.status == 0, finished.output
    assert "[rank 0] 3\n" in finished.output and "[rank 1] 3\n" in finished.output


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cluster.Cluster]:
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with cluster.up(nodes=2) as own:
            yield own


@NEEDS_CLUSTER
def test_srun_in_front_of_the_launcher_is_refused(slurm: cluster.Cluster) -> None:
    output = slurm.run(["srun", "--ntasks=2", *LAUNCH], 300).output
    assert REFUSED.format("srun", "srun") in output and GOES_ON not in output


@NEEDS_CLUSTER
def test_the_shell_of_a_step_launches(slurm: cluster.Cluster) -> None:
    in_terminal = [sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])"]
    output = slurm.run([*in_terminal, "srun", "--ntasks=2", "--pty", *LAUNCH], 300).output
    assert GOES_ON in output


@NEEDS_CLUSTER
def test_a_batch_script_launches_also_if_a_step_has_submitted_it(slurm: cluster.Cluster, tmp_path: Path) -> None:
    said = tmp_path / "said"
    submit = ["sbatch", "--ntasks=2", f"--output={said}", f"--wrap={shlex.join(LAUNCH)}"]
    slurm.run(["env", "SLURM_STEP_NUM_TASKS=2", *submit], 300)  # Slurm passes it on to the script
    until(lambda: said.exists() and "\n" in said.read_text(), "the script says nothing")
    assert said.read_text().startswith(GOES_ON)
