"""The command line: each command of `distlab` by its name, with the function that does the work.

The signature of that function is the command's options, and its docstring says what they are. Its module is imported
when the command is used, so that `distlab --help` is quick.
"""

import re
import sys
from collections.abc import Mapping, Sequence

from cyclopts import (
    App,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
)

from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Study": {
        "lab": (
            "course_tools.jupyterlab_server:open_lab",
            "Open JupyterLab on your own copy of the notebooks and labs.\n\nExample: `distlab lab --fresh 06`",
        ),
        "check": (
            "course_tools.grading.grade_class:check",
            "Check the exercises of a lab in your working copy.\n\nExample: `distlab check 06`",
        ),
        "progress": (
            "course_tools.student_progress:print_progress",
            "Show which chapters of your copy ran and which exercises are solved.\n\nExample: `distlab progress`",
        ),
        "doctor": (
            "course_tools.setup.doctor:print_findings",
            "Say what this machine has for the course and how to fix the rest.\n\nExample: `distlab doctor`",
        ),
        "launch": (
            "distlab.launch.by_name:launch",
            "Run a program as several processes: launch PROGRAM -- ITS ARGUMENTS.\n\n"
            "Example: `distlab launch train.py --workers 4 -- --epochs 3`; the program's own options stand after `--`",
        ),
        "predict": (
            "distlab.costs.printed:print_prediction",
            "Step time and efficiency on a cluster, by formula.\n\n"
            "Of synchronous data-parallel training; step time and memory of transformers on tensor × pipeline × data "
            "ranks. Your own network and machine are files:\n\n"
            "    # network.toml                        # machine.toml\n"
            '    batch = 64                            like = "dgx-a100"\n'
            "    images_per_second = 450               ranks_per_host = 4\n"
            "    [[layers]]                            [between]\n"
            '    name = "convolution 1"                latency = 9.6e-6\n'
            "    parameters = 9408                     gigabits_per_second = 100\n"
            "    flops = 236e6\n\n"
            "Example: `distlab predict --model network.toml --hardware machine.toml --ranks 1..64`",
        ),
        "measure": (
            "distlab.costs.measured.measure:measure_cluster",
            "Time steps and all-reduces on your cluster.\n\n"
            "Run it as you run your training, on at least two hosts; each rank executes it:\n\n"
            "    horovodrun --gloo -np 2 -H node1:1,node2:1 distlab measure --output two.json\n"
            "    mpirun -np 2 -H node1:1,node2:1 distlab measure --output two.json\n"
            "    srun --mpi=pmix --nodes=2 --ntasks-per-node=1 distlab measure --output two.json\n"
            "    srun --nodes=2 --ntasks-per-node=1 distlab measure --gloo-from-slurm --output two.json\n\n"
            "Then: distlab predict --measured two.json --ranks 1..1024",
        ),
    },
    "Teach": {
        "execute": (
            "course_tools.runner:execute",
            "Run the notebooks without a browser; write a report and the site.\n\n"
            "Example: `distlab execute --only 03 --workers 4`\n\n"
            "Exit status: 0 when every notebook ran or was skipped for a reason that is given, 1 when one failed or "
            "results could not be written, 2 for a wrong option, 130 when the run was interrupted, 143 after SIGTERM.",
        ),
        "release": (
            "course_tools.lab_sources:write_release",
            "Write the labs to hand out to build/release.\n\nExample: `distlab release --only 06,07`",
        ),
        "grade": (
            "course_tools.grading.grade_class:grade",
            "Grade SUBMISSIONS/STUDENT/NN_topic/lab.ipynb; writes build/grades.\n\n"
            "Example: `distlab grade submissions --only 06`",
        ),
        "quiz": (
            "distlab.quizzes.quiz:print_quiz",
            "Print questions on chapters. The numbers depend on the seed; the answers are computed.\n\n"
            "Example: `distlab quiz 06 07 --seed 2`",
        ),
        "site": (
            "course_tools.site.build:write_site",
            "Write the course's site to build/site.\n\nExample: `distlab site --no-solutions`\n\n"
            "Exit status: 0, or 1 when the site was written and something in it is wrong, such as a link.",
        ),
        "slides": (
            "course_tools.slides.build:write_slides",
            "Write a deck of slides for each chapter to build/slides.\n\nExample: `distlab slides --only 03`",
        ),
        "pages": (
            "course_tools.html_pages:write_pages",
            "Write HTML pages of the committed notebooks, as they are, to build/html.\n\nExample: `distlab pages`",
        ),
    },
    "Maintain": {
        "setup": (
            "course_tools.setup.horovod:set_up",
            "Prepare this Python environment: start-up file, Horovod.\n\nExample: `distlab setup --retry`",
        ),
        "setup-frameworks": (
            "course_tools.setup.other_frameworks:set_up",
            "Install other frameworks into their own environments.\n\nExample: `distlab setup-frameworks torch`",
        ),
        "notebooks": (
            "course_tools.recording:write_notebooks",
            "Write the notebooks with outputs from their text sources.\n\nExample: `distlab notebooks --only 03`",
        ),
        "labs": (
            "course_tools.lab_sources:write_labs",
            "Write the labs' notebooks from their text sources.\n\nExample: `distlab labs --only 06`",
        ),
        "record-cluster": (
            "course_tools.recording:record_cluster",
            "Run notebook 15 on the cluster that runs, and record it.\n\nExample: `distlab record-cluster`",
        ),
        "map": (
            "course_tools.course_map:write",
            "Write the tables of the README and docs, and docs/commands.md.\n\nExample: `distlab map`",
        ),
        "bench": (
            "course_tools.bench.parts:bench",
            "Measure the course; writes build/bench.json and build/bench.html.\n\n"
            "Example: `distlab bench --only training`",
        ),
    },
}
CLUSTER: Mapping[str, tuple[str, str]] = {
    "up": ("distlab.cluster.terminal:start", "Start it."),
    "run": (
        "distlab.cluster.terminal:run",
        "Run a command on its login node: run -- COMMAND.\n\nExample: `distlab cluster run -- sinfo`",
    ),
    "status": ("distlab.cluster.terminal:show", "Show its nodes, links and jobs."),
    "link": ("distlab.cluster.terminal:link", "Limit, cut or restore the link of a node."),
    "down": ("distlab.cluster.terminal:end", "End it with every job; nothing of it stays."),
}


def as_sentence(error: CycloptsError) -> str:
    """An error as it is printed. Raises NoSuchName for a wrong command, with the nearest ones or all."""
    if isinstance(error, UnknownCommandError) and error.app and error.unused_tokens:
        require_name([name for name in error.app if name[0] != "-"], error.unused_tokens[0], "command")
    if isinstance(error, (UnknownOptionError, MissingArgumentError)) and error.app:
        return " ".join([str(error), *re.findall("Example: .*", error.app.help)])
    return str(error)


app = App(
    name="distlab",
    error_formatter=as_sentence,
    help="The tools of the course.",
    help_flags=["help", "--help", "-h"],
    version_flags=[],
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative=(), consume_multiple=True, show_default=lambda value: value or None),
)
groups = {title: Group.create_ordered(title) for title in COMMANDS}
for title, commands in COMMANDS.items():
    for name, (function, sentence) in commands.items():
        app.command(function, name=name, help=sentence, group=groups[title])
cluster = App(
    name="cluster",
    help="A Slurm cluster on this machine.\n\nExample: `distlab cluster up`",
    group=groups["Study"],
)
app.command(cluster)
for name, (function, sentence) in CLUSTER.items():
    cluster.command(function, name=name, help=sentence)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 2 after a sentence on the error stream for a user's mistake."""
    try:
        status = app(
            sys.argv[1:] if arguments is None else arguments, exit_on_error=False, result_action="return_value"
        )
        return status or 0
    except CycloptsError:  # which has been printed
        return 2
    except PlainError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
