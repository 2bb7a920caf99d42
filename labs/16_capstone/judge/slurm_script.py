"""A job script as sbatch and bash read it: options, variables, and the commands with srun."""

import itertools
import re
import shlex
from dataclasses import dataclass, field, replace

SHORT = {
    "-N": "nodes",
    "-n": "ntasks",
    "-c": "cpus-per-task",
    "-t": "time",
    "-J": "job-name",
    "-o": "output",
    "-a": "array",
}
_ENDS = ";&|()"  # of commands, also several in a row
_ENDS_OF_BLOCKS = ("fi", "done", "esac", "}")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-[^}]*)?\})")


@dataclass(frozen=True)
class ShellCommand:
    """One command of bash as words; end: what is after it, such as "&&"; in_loop: whether a loop repeats it."""

    words: list[str]
    end: str = ";"
    in_loop: bool = False

    @property
    def background(self) -> bool:
        """Whether bash goes on at once."""
        return self.end == "&"

    def step(self) -> tuple[dict[str, str], list[str]] | None:
        """The options of srun, and what it starts; None if the command has no srun."""
        if "srun" not in self.words or self.words[0] in ("echo", "printf"):
            return None
        options, program, _ = _options(self.words[self.words.index("srun") + 1 :])
        return options, program


@dataclass
class JobScript:
    """What sbatch and bash find in the text.

    options: of sbatch, by long name; late: those after the first command, which sbatch does not read; refused: by the
    option before it, a word at which sbatch refuses the line; variables: what the script sets; exported: those of them
    that srun sees; interpreter: the words of the first line.
    """

    options: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    commands: list[ShellCommand] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)
    interpreter: list[str] = field(default_factory=list)

    def steps(self) -> list[ShellCommand]:
        """The commands with srun."""
        return [command for command in self.commands if command.step()]

    def repeats(self, step: ShellCommand) -> bool:
        """Whether it is in a loop that only ends by itself; one that tries again leaves with break or exit."""
        later = itertools.takewhile(lambda command: command.in_loop, self.commands[self.commands.index(step) :])
        return step.in_loop and not any({"break", "exit"} & set(command.words[:2]) for command in later)

    def waits_for(self, step: ShellCommand) -> bool:
        """Whether the script ends only after this command."""
        later = self.commands[self.commands.index(step) + 1 :]
        return not step.background or any("wait" in command.words for command in later)

    def loses_status(self, step: ShellCommand) -> bool:
        """Whether the script surely ends with another status than this command's, a plain one that has failed."""
        later = [own for own in self.commands[self.commands.index(step) + 1 :] if own.words[0] not in _ENDS_OF_BLOCKS]
        if step.end == "|":
            return not self._is_set("pipefail")
        is_plain = step.end == ";" and not step.in_loop and not set(step.words) & {"if", "while", "until", "!", "exec"}
        is_seen = any("exit" in command.words or "$?" in " ".join(command.words) for command in later)
        return is_plain and bool(later) and not is_seen and not self._is_set("errexit", "e")

    def _is_set(self, option: str, letter: str = "") -> bool:
        """Whether bash has an option, by `set` or in the first line."""
        by_letter = re.compile(rf"-[A-Za-z]*{letter}[A-Za-z]*") if letter else None
        settings = [self.interpreter, *(command.words for command in self.commands if command.words[0] == "set")]
        words = [word for own in settings for word in own[1:]]
        return option in words or bool(by_letter and any(by_letter.fullmatch(word) for word in words))

    def expanded(self, text: str) -> str:
        """The text with the values of variables, Slurm's own among them; unknown ones stay."""
        known = self._set_by_slurm() | self.variables
        for _ in range(3):  # a variable may be set to another one
            text = _VARIABLE.sub(lambda match: known.get(match[1] or match[2], match[0]), text)
        return text

    def _set_by_slurm(self) -> dict[str, str]:
        names = {
            "cpus-per-task": ("SLURM_CPUS_PER_TASK",),
            "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
            "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
            "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
        }
        options = dict(self.options)
        nodes, per_node = (whole_number(options.get(name, "")) for name in ("nodes", "ntasks-per-node"))
        if "ntasks" not in options and nodes is not None and per_node is not None:
            options["ntasks"] = str(nodes * per_node)
        return {
            variable: options[name] for name, variables in names.items() if name in options for variable in variables
        }


def whole_number(text: str) -> int | None:
    """Of an option's value, also of a range such as 2-2 that leaves no choice; None for another text."""
    first, _, last = text.partition("-")
    return int(first) if first.isdecimal() and last in ("", first) else None


def read(text: str) -> JobScript:
    """The script as sbatch reads it: options only before the first command."""
    script, begun, loops = JobScript(interpreter=text.partition("\n")[0].removeprefix("#!").split()), False, 0
    for line in re.sub(r"\\\n", " ", text).splitlines():
        stripped = line.strip()
        if line.startswith("#SBATCH"):
            options, rest, last = _options(_words(line.removeprefix("#SBATCH")))
            if begun:
                script.late += options
            else:
                script.options |= options
                if rest:
                    script.refused[last] = rest[0]
        elif stripped and not stripped.startswith("#"):
            begun = True
            for command in _commands(stripped):
                loops += (command.words[0] == "do") - (command.words[0] == "done")
                _add(script, replace(command, in_loop=loops > 0))
    return script


def _add(script: JobScript, command: ShellCommand) -> None:
    """A command, or the variables that it sets."""
    words = list(command.words)
    exported = words[:1] == ["export"]
    if exported:
        words.pop(0)
    assigned = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        assigned[name] = value
    script.variables |= assigned
    if exported:
        assigned |= {name: script.variables[name] for name in words if name in script.variables}
    if exported or words:
        script.exported |= assigned
    if words and not exported:
        script.commands.append(replace(command, words=words))


def _commands(line: str) -> list[ShellCommand]:
    """The commands of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=_ENDS)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        words = line.split()
    commands: list[ShellCommand] = []
    own: list[str] = []
    for word in [*words, ";"]:
        if word.strip(_ENDS):
            own.append(word)
        elif own:
            commands.append(ShellCommand(own, word))
            own = []
    return commands


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _options(words: list[str]) -> tuple[dict[str, str], list[str], str]:
    """Options by long name, the words after the last of them, and its name."""
    options: dict[str, str] = {}
    words, name = list(words), ""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:
            name, has_value, value = word[:2], "=", word[2:].lstrip("=")
        name = SHORT.get(name, name.lstrip("-"))
        if not has_value and words and not words[0].startswith("-") and name in (*SHORT.values(), "ntasks-per-node"):
            value = words.pop(0)
        options[name] = value
    return options, words, name
