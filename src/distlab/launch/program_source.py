"""What the source of a program tells before it is started: which way of starting suits it, which modules it lacks.

A source that Python itself cannot read tells nothing: Python will say why.
"""

import ast
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from distlab.launch.job import is_of_another_job

_STRATEGY = "MultiWorkerMirroredStrategy"
_TF_CONFIG = "TF_CONFIG"
# Those who train together without TF_CONFIG, whatever strategy the program knows besides.
_OTHER_WAYS = {"horovod", "mpi4py"}
# Who makes a TF_CONFIG of the variables of a Slurm task, here and in TensorFlow.
_OF_SLURM = {"from_slurm", "SlurmClusterResolver"}
# Those for whose sake a program is launched; each of them imports NumPy.
_NUMPY = "numpy"
_PACKAGES = {"deepspeed", "distlab", "horovod", "keras", "mpi4py", "mxnet", "ray", "tensorflow", "tf_keras", "torch"}
_PROGRAMS = Path(__file__).parents[3] / "notebooks" / "programs"
# By file, for `differs_from_import`.
_first_sources: dict[Path, bytes] = {}


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


def imported_packages(program: Path) -> set[str]:
    """The packages that a Python file and the files beside it that it imports name; {} where it cannot be parsed."""
    return set().union(*(_imported(ast.walk(tree)) for tree in _trees(program)))


def variables_set(program: Path) -> set[str]:
    """The environment variables that a program and the files beside it that it imports set, as far as it names them."""
    names: set[str] = set()
    for node in (node for tree in _trees(program) for node in ast.walk(tree)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_environ(node.value):
            names |= _texts([node.slice])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _is_environ(node.func.value) and node.func.attr in ("setdefault", "update"):
                names |= _texts(node.args[:1]) | {each.arg for each in node.keywords if each.arg}
            elif node.func.attr == "putenv":
                names |= _texts(node.args[:1])
        elif isinstance(node, ast.AugAssign) and _is_environ(node.target):
            names |= _texts([node.value])
    return names


def hidden_package(program: Path) -> tuple[Path, str] | None:
    """The file, the program or one beside it, that Python would take for a package that the program needs; its name.

    Python looks in the folder of a program first.
    """
    names = imported_packages(program)
    packages = names & {*_PACKAGES, _NUMPY}
    if packages:
        packages.add(_NUMPY)
    if program.stem in names and program.stem not in packages:
        folder = program.resolve().parent
        elsewhere = [place for place in sys.path if Path(place).resolve() != folder]
        if program.stem in sys.stdlib_module_names or PathFinder.find_spec(program.stem, elsewhere):
            packages.add(program.stem)
    files = {program.with_name(f"{name}.py"): name for name in sorted(packages)}
    return next(((file, name) for file, name in files.items() if file.exists()), None)


def modules_to_copy(program: Path, more_places: Sequence[str] = ()) -> tuple[str, list[str]] | None:
    """The folder of the course with modules that the program needs and would not find, and the names of those files.

    A program of the course may have been copied without them. `more_places` are searched too. A program that changes
    `sys.path` itself may find what it likes.
    """
    trees = _trees(program)
    if any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path" for tree in trees for node in ast.walk(tree)
    ):
        return None
    places = [str(program.resolve().parent), *more_places, *sys.path]

    def missing_from(folder: Path, names: Iterable[str]) -> set[str]:
        return {name for name in names if (folder / f"{name}.py").exists() and not PathFinder.find_spec(name, places)}

    always = set().union(*(_imported(tree.body) for tree in trees))
    by_folder = {folder: missing for folder in sorted(_PROGRAMS.glob("*")) if (missing := missing_from(folder, always))}
    if not by_folder:
        return None
    folder = max(by_folder, key=lambda folder: ((folder / program.name).exists(), len(by_folder[folder])))
    files = [program, *(folder / f"{name}.py" for name in by_folder[folder])]
    every = missing_from(folder, set().union(*map(imported_packages, files)))
    return f"notebooks/programs/{folder.name}", sorted(f"{name}.py" for name in every)


def differs_from_import(program: Path) -> bool:
    """Whether a program that this process has imported as a module has changed since it was first asked for here."""
    file = program.resolve()
    named_alike = [path for module in [*sys.modules.values()] if (path := _file(module)).endswith(file.name)]
    if file not in map(Path.resolve, map(Path, named_alike)):
        return False
    source = file.read_bytes()
    return _first_sources.setdefault(file, source) != source


def _file(module: object) -> str:
    return getattr(module, "__file__", None) or ""


def _trees(program: Path) -> list[ast.Module]:
    """Those of the program and of the files beside it that it imports."""
    trees, waiting, seen = [], [program], {program}
    while waiting:
        trees.append(_tree(waiting.pop()))
        beside = {program.with_name(f"{name}.py") for name in _imported(ast.walk(trees[-1]))} - seen
        waiting += [file for file in beside if file.exists()]
        seen |= beside
    return trees


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The packages that these statements import."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.partition(".")[0] for name in names}


def _is_environ(node: ast.AST) -> bool:
    return ast.unparse(node) in ("os.environ", "environ")


def _texts(nodes: Iterable[ast.AST]) -> set[str]:
    """The texts among these, and those that are keys of dictionaries among them."""
    nodes = [key for node in nodes for key in (node.keys if isinstance(node, ast.Dict) else [node]) if key]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _tree(program: Path) -> ast.Module:
    try:
        return ast.parse(program.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
