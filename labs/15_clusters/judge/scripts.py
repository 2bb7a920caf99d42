"""A student's job script as the judges of lab 15 see it: the job that it asks for, and what it starts."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lab_15 import fake_slurm, observe
from lab_15.fake_slurm import BatchJob
from lab_15.hints import Lab15Hint
from lab_15.slurm_options import SRUN, Refused, TooLong

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotPlain
from distlab.labs.plain_data import as_record
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong

LONGEST = 10_000
_TO_RUN = ("python", "python3")


class WrongScript(Exception):
    """The script has a mistake for which nothing else can be judged; the argument is its hint."""

    def __init__(self, hint: AnyHint) -> None:
        super().__init__(hint)
        self.hint = hint


@dataclass(frozen=True)
class StartedProgram:
    """A program that the script has started: how many tasks on how many nodes, whether one that fails ends the others.

    waits: the seconds that the other tasks have when the first one has ended, None without a limit.  by_srun: False for
    what the script runs itself.
    """

    name: str
    arguments: list[str]
    tasks: int
    nodes: int
    kills: bool
    waits: int | None
    by_srun: bool

    @property
    def layout(self) -> str:
        """Such as "8 tasks on 4 nodes"."""
        return f"{counted(self.tasks, 'task')} on {counted(self.nodes, 'node')}"


@dataclass(frozen=True)
class ScriptAttempt:
    """One run of the script: its programs, its status, the commands of Slurm that it called, bash's first complaint."""

    programs: list[StartedProgram]
    status: int
    commands: list[list[str]]
    complaint: str

    @property
    def names(self) -> list[str]:
        """The programs in order."""
        return [program.name for program in self.programs]


def counted(number: int, noun: str) -> str:
    """Such as "1 node" or "4 nodes"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """Words in a row as a shell would need them, or "nothing"."""
    return shlex.join(words[:12]) if words else "nothing"


def arguments(words: Sequence[str]) -> str:
    """Such as "the arguments --data 'set 1'", or "no arguments"."""
    return f"the arguments {listed(words)}" if words else "no arguments"


def separated(words: Sequence[str], option: str) -> list[str]:
    """The words with "--option=value" in two, as "--option" and "value"."""
    result: list[str] = []
    for word in words:
        result += word.split("=", 1) if word.startswith(f"{option}=") else [word]
    return result


@dataclass(frozen=True)
class Script:
    """The student's text, and the job that sbatch makes of it."""

    name: str
    text: str
    job: BatchJob

    @classmethod
    def of(cls, answer: Answer, name: str) -> "Script":
        """The answer's script. Raises WrongScript if it cannot be submitted, or bash cannot run it."""
        text = answer.value(name)
        if not isinstance(text, str):
            raise WrongScript(Lab15Hint.NO_TEXT.says(name=name))
        if len(text) > LONGEST:
            raise WrongScript(Lab15Hint.TOO_LONG.says(count=LONGEST))
        if text.lstrip().startswith("#!") and not text.startswith("#!"):
            raise WrongScript(Lab15Hint.EMPTY_FIRST_LINE)
        try:
            job = fake_slurm.submitted(text)
        except TooLong as reason:
            if not reason.seconds:
                raise WrongScript(Lab15Hint.REFUSED.says(said=_quoted(str(reason)))) from None
            said, most = duration(reason.seconds), duration(fake_slurm.LONGEST)
            hint = Lab15Hint.REFUSED_TIME.says(time=_quoted(reason.time), said=said, most=most)
            raise WrongScript(hint) from None
        except Refused as reason:
            raise WrongScript(Lab15Hint.REFUSED.says(said=_quoted(str(reason)))) from None
        if not any(word.rpartition("/")[2] == "bash" for word in job.interpreter):
            raise WrongScript(Lab15Hint.NOT_BASH.says(said=_quoted(" ".join(job.interpreter) or "nothing")))
        if job.late:
            raise WrongScript(Lab15Hint.LATE_OPTION.says(line=_quoted(job.late[0])))
        return cls(name, text, job)

    def attempts(self, answer: Answer, runs: Sequence[observe.Circumstances]) -> list[ScriptAttempt]:
        """What the script does under each of these circumstances. Raises WrongScript, for example if it never ends."""
        flags = [word for word in self.job.interpreter[1:] if word in ("-e", "-u", "-x", "-eu", "-ex", "-eux")]
        plain_runs = [vars(circumstances) for circumstances in runs]
        records = answer.inside(observe.run_script, self.text, flags, plain_runs)
        if not isinstance(records, list):
            records = []
        attempts = [self._attempt(as_record(record, observe.ScriptRun)) for record in records]
        if len(attempts) != len(runs):
            raise NotPlain("what the script did does not have the form that the check needs")
        return attempts

    def _attempt(self, run: observe.ScriptRun) -> ScriptAttempt:
        if run.status is None:
            raise WrongScript(Lab15Hint.NEVER_ENDS)
        programs, commands = [], []
        for call in run.calls:
            words = [str(word) for word in call] if isinstance(call, list) else []
            if words[:1] in (["mpirun"], ["horovodrun"]):
                raise WrongScript(Lab15Hint.NOT_SRUN.says(said=words[0]))
            if words[:1] in (["scontrol"], ["sbatch"], ["scancel"]):
                commands.append(words)
            elif words and (program := self._started(words)):
                programs.append(program)
        if not programs and run.printed.strip() and run.status:
            raise WrongScript(Lab15Hint.BASH_SAYS.says(said=_quoted(run.printed.strip().splitlines()[0])))
        complaints = [line for line in run.printed.splitlines() if line.startswith("script: ")]
        return ScriptAttempt(programs, run.status, commands, _quoted(complaints[0]) if complaints else "")

    def _started(self, words: list[str]) -> StartedProgram | None:
        """The Python program that a command starts, if it does."""
        if words[0] in _TO_RUN:
            return _program(words[1:], fake_slurm.Step(1, 1, False, None, []), by_srun=False)
        if words[0] != "srun":
            return None
        try:
            step = fake_slurm.step(words[1:], self.job)
        except Refused as reason:
            if variable := self._empty_variable(words[1:]):
                raise WrongScript(Lab15Hint.EMPTY_VALUE.says(call=_quoted(listed(words)), variable=variable)) from None
            raise WrongScript(
                Lab15Hint.STEP_REFUSED.says(call=_quoted(listed(words)), said=_quoted(str(reason)).rstrip("."))
            ) from None
        if step.program[0].isdigit():
            raise WrongScript(Lab15Hint.VALUE_IS_PROGRAM.says(call=_quoted(listed(words)), word=step.program[0]))
        if step.program[0].endswith(".py"):
            raise WrongScript(Lab15Hint.NO_PYTHON.says(call=_quoted(listed(words)), program=_quoted(step.program[0])))
        if step.program[0].rpartition("/")[2] not in _TO_RUN:
            return None
        return _program(step.program[1:], step, by_srun=True)

    def _empty_variable(self, words: list[str]) -> str:
        """The variable from which an option of srun gets no value, such as "`$nodes`"; "" if there is none."""
        try:
            options, _ = SRUN.parsed(words)
        except Refused:
            return ""
        for name in (name for name, value in options if not value and name in ("nodes", "ntasks")):
            letter = next(short for short, long in SRUN.short.items() if long == name)
            match = re.search(rf"(?:--{name}[= ]|-{letter} ?)\"?\$\{{?(\w+)", self.text)
            if match:
                return f"`${match[1]}`"
        return ""


def _program(words: list[str], step: fake_slurm.Step, by_srun: bool) -> StartedProgram | None:
    for place, word in enumerate(words):
        if word.endswith(".py"):
            name, own = word.rpartition("/")[2], words[place + 1 :]
            return StartedProgram(name, own, step.tasks, step.nodes, step.kills, step.waits, by_srun)
    return None


def _quoted(text: str) -> str:
    """At most 150 printable characters of the student's own."""
    return "".join(character if character.isprintable() else "?" for character in text[:150])


@dataclass(frozen=True)
class ScriptHints:
    """What is said about the parts of a script, by their names; None for a part that is right.

    of_options: the parts that the #SBATCH lines decide; of_runs: those that bash decides, in these attempts.
    """

    job: BatchJob
    attempts: Sequence[ScriptAttempt]
    of_options: Mapping[str, AnyHint | None]
    of_runs: Mapping[str, AnyHint | None]

    def verdict(self) -> Verdict:
        """The verdict on all parts. A line that is no option, or what bash says, comes before what follows from it."""
        hints: dict[str, AnyHint | None] = {}
        for name, hint in self.of_options.items():
            comments = self.job.comments
            hints[name] = Lab15Hint.COMMENT_OPTION.says(line=_quoted(comments[0])) if hint and comments else hint
        complaint = next((attempt.complaint for attempt in self.attempts if attempt.complaint), "")
        for name, hint in self.of_runs.items():
            said = Lab15Hint.BASH_COMPLAINS.says(said=complaint)
            hints[name] = said.then(hint) if hint and complaint else hint
        return parts({name: right() if hint is None else wrong(hint) for name, hint in hints.items()})


def judged(judge: Callable[[], ScriptHints]) -> Verdict:
    """The verdict on a script, of which nothing is judged if there is a WrongScript."""
    try:
        return judge().verdict()
    except WrongScript as mistake:
        return wrong(mistake.hint)


def resources(job: BatchJob, nodes: int, ranks: int, seconds: int) -> AnyHint | None:
    """The hint if it is an array, or the job gets other nodes, tasks or time."""
    if job.array:
        return Lab15Hint.AN_ARRAY
    if not job.least_nodes == job.nodes == nodes:
        return Lab15Hint.NODES.says(count=counted_nodes(job), expected=nodes)
    if job.ranks != ranks:
        return Lab15Hint.RANKS_PER_NODE.says(count=counted(job.ranks, "rank"), expected=ranks)
    if ranks > nodes and job.tasks_per_node is None:
        return Lab15Hint.RANKS_UNEVEN.says(count=ranks, nodes=nodes, first=ranks - nodes + 1)
    return time_limit(job, seconds)


def others_wait(program: StartedProgram) -> AnyHint | None:
    """The hint if one rank that fails does not end the others at once."""
    if program.kills:
        return None
    if program.waits is None:
        return Lab15Hint.OTHERS_WAIT
    return Lab15Hint.OTHERS_GO_ON.says(count=counted(program.waits, "second"))


def counted_nodes(job: BatchJob) -> str:
    """Such as "4 nodes" or "2 to 4 nodes"."""
    return (f"{job.least_nodes} to " if job.least_nodes < job.nodes else "") + counted(job.nodes, "node")


def time_limit(job: BatchJob, seconds: int) -> AnyHint | None:
    """The hint if the job has another time limit."""
    if job.seconds is None:
        return Lab15Hint.NO_TIME
    if job.seconds == seconds:
        return None
    hint = Lab15Hint.TIME if job.time.count(":") < 2 and "-" not in job.time else Lab15Hint.TIME_OTHERWISE
    return hint.says(said=duration(job.seconds), expected=duration(seconds))


def duration(seconds: int) -> str:
    """Hours, minutes and seconds, without those that are zero."""
    units = ((seconds // 3600, "hour"), (seconds // 60 % 60, "minute"), (seconds % 60, "second"))
    return " ".join(counted(count, unit) for count, unit in units if count) or "0 seconds"


def log(job: BatchJob, name: str, number: int) -> AnyHint | None:
    """The hint if the log of job `number` is not name-number.out."""
    expected = f"{name}-{number}.out"
    if job.log(number) == expected:
        return None
    said = _quoted(job.log(number))
    has_patterns = re.search(r"%x", job.output or "") and re.search(r"%[jJA]", job.output or "")
    if not has_patterns:
        return Lab15Hint.LOG.says(job=number, said=said, expected=expected)
    if job.name != name:
        return Lab15Hint.LOG_NAME.says(job=number, said=said, expected=expected, name=job.name)
    return Lab15Hint.LOG_OTHERWISE.says(job=number, said=said, expected=expected)
