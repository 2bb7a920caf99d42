"""The options of sbatch and srun, and how Slurm reads them: as getopt_long does, with beginnings of long names.

Slurm 22.05; tests/distlab/labs/lab_15 compares it with the real one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ALIASES = {"tasks-per-node": "ntasks-per-node"}
"""Second names of options."""


class Refused(Exception):
    """Slurm does not take this; the message is a sentence."""


class TooLong(Refused):
    """No job may take as long as this; `time` is what is written, `seconds` what it means."""

    def __init__(self, time: str, seconds: int) -> None:
        super().__init__("sbatch: error: Requested time limit is invalid (missing or exceeds some limit)")
        self.time, self.seconds = time, seconds


@dataclass(frozen=True)
class OptionTable:
    """The options of one command: those with a value, without one, with an optional one; short names of long ones."""

    command: str
    with_value: frozenset[str]
    without_value: frozenset[str]
    optional_value: frozenset[str]
    short: dict[str, str]

    def parsed(self, words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
        """Options with their values ("" without one), in order, and the words from the first that is no option.

        Raises Refused.
        """
        options: list[tuple[str, str]] = []
        rest = list(words)
        while rest and rest[0].startswith("-") and rest[0] != "-":
            word = rest.pop(0)
            if word == "--":
                break
            parse = self._long if word.startswith("--") else self._short
            options += parse(word, rest)
        return options, rest

    def _long(self, word: str, rest: list[str]) -> list[tuple[str, str]]:
        written, equals, value = word[2:].partition("=")
        name = self._whole(written)
        name = ALIASES.get(name, name)
        if name in self.without_value and equals:
            raise Refused(f"{self.command}: option '--{name}' doesn't allow an argument")
        if name in self.with_value and not equals:
            if not rest:
                raise Refused(f"{self.command}: option '--{name}' requires an argument")
            value = rest.pop(0)
        return [(name, value)]

    def _whole(self, written: str) -> str:
        names = self.with_value | self.without_value | self.optional_value
        if written in names:
            return written
        possible = sorted(name for name in names if name.startswith(written))
        if len(possible) > 1:
            listed = " ".join(f"'--{name}'" for name in possible)
            raise Refused(f"{self.command}: option '--{written}' is ambiguous; possibilities: {listed}")
        if not possible:
            raise Refused(f"{self.command}: unrecognized option '--{written}'")
        return possible[0]

    def _short(self, word: str, rest: list[str]) -> list[tuple[str, str]]:
        options, letters = [], word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in self.short:
                raise Refused(f"{self.command}: invalid option -- '{letter}'")
            name, value = self.short[letter], ""
            if name not in self.without_value:
                value, letters = letters, ""
                if name in self.with_value and not value:
                    if not rest:
                        raise Refused(f"{self.command}: option requires an argument -- '{letter}'")
                    value = rest.pop(0)
            options.append((name, value))
        return options


_BOTH_WITH_VALUE = """
account acctg-freq bb bbf begin chdir cluster-constraint clusters comment constraint container core-spec
cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude export
extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input
job-name licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist
nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer
priority profile qos reservation signal sockets-per-node switches tasks-per-node thread-spec threads-per-core time
time-min tmp uid wckey
"""
_BOTH_WITHOUT_VALUE = """
contiguous help hold overcommit oversubscribe quiet reboot spread-job test-only usage use-min-nodes verbose version
"""
_BOTH_OPTIONAL = "exclusive nice no-kill propagate"
_BOTH_SHORT = {
    **{"A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task", "C": "constraint", "D": "chdir"},
    **{"d": "dependency", "e": "error", "F": "nodefile", "G": "gpus", "h": "help", "H": "hold", "i": "input"},
    **{"J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution", "M": "clusters", "n": "ntasks"},
    **{"N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet", "S": "core-spec"},
    **{"s": "oversubscribe", "t": "time", "v": "verbose", "V": "version", "w": "nodelist", "x": "exclude"},
}


def _table(command: str, with_value: str, without_value: str, optional: str, short: dict[str, str]) -> OptionTable:
    return OptionTable(
        command,
        frozenset((_BOTH_WITH_VALUE + with_value).split()),
        frozenset((_BOTH_WITHOUT_VALUE + without_value).split()),
        frozenset(f"{_BOTH_OPTIONAL} {optional}".split()),
        _BOTH_SHORT | short,
    )


SBATCH = _table(
    "sbatch",
    "array batch export-file kill-on-invalid-dep wait-all-nodes wrap",
    "ignore-pbs no-requeue parsable requeue wait",
    "get-user-env",
    {"a": "array", "W": "wait"},
)
SRUN = _table(
    "srun",
    "accel-bind bcast-exclude cpu-bind epilog het-group jobid mpi msg-timeout prolog relative slurmd-debug task-epilog "
    "task-prolog threads wait",
    "disable-status exact label multi-prog no-allocate overlap preserve-env pty quit-on-interrupt unbuffered",
    "bcast compress immediate kill-on-bad-exit resv-ports send-libs x11",
    {
        **{"E": "preserve-env", "I": "immediate", "K": "kill-on-bad-exit", "l": "label", "r": "relative"},
        **{"T": "threads", "u": "unbuffered", "W": "wait", "X": "disable-status", "Z": "no-allocate"},
    },
)
