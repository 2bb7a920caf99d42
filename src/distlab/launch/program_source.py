"""What the source of a program tells before it is started: which way of starting suits it.

A source that Python itself cannot read tells nothing: Python will say why.
"""

import ast
from collections.abc import Iterable
from pathlib import Path

from distlab.launch.job import is_of_another_job

_STRATEGY = "MultiWorkerMirroredStrategy"
_TF_CONFIG = "TF_CONFIG"
# Those who train together without TF_CONFIG, whatever strategy the program knows besides.
_OTHER_WAYS = {"horovod", "mpi4py"}
# Who makes a TF_CONFIG of the variables of a Slurm task, here and in TensorFlow.
_OF_SLURM = {"from_slurm", "SlurmClusterResolver"}


def begins_with(program: Path, package: str) -> bool:
    """Whether the program imports the package in any case: not in a function that may never be called."""
    return package in _imported(_tree(program).body)


def needs_tf_config(program: Path, starter: str) -> bool:
    """Whether the workers of the program find each other by a TF_CONFIG that nobody would give them.

    They do where it makes TensorFlow's strategy for several workers, and neither imports another way to train together
    nor reads what `starter`, such as mpirun, tells a rank about its place.
    """
    nodes = list(ast.walk(_tree(program)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if _STRATEGY not in names or _OTHER_WAYS & _imported(nodes) or (starter == "srun" and _OF_SLURM & names):
        return False
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    variables = {text for text in texts if is_of_another_job(text)} - {_TF_CONFIG}
    # Only srun tells a rank what Slurm says.
    return all(variable.startswith("SLURM_") and starter != "srun" for variable in variables)


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The packages that these statements import."""
    names = [alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names]
    names += [each.module for each in nodes if isinstance(each, ast.ImportFrom) and each.module]
    return {name.partition(".")[0] for name in names}


def _tree(program: Path) -> ast.Module:
    try:
        return ast.parse(program.read_bytes())
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
