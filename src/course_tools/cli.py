"""The command line: `distlab setup`, `doctor`, `execute`, `launch`, `predict`, `check`, `grade` and others.

Each package that has subcommands registers them in its module `command`, by `add_commands`; here is the one parser.
"""

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from distlab.runtime import environment
from distlab.runtime.errors import PlainError, refused_write

# Their programs have arguments of their own.
LAUNCH, CLUSTER_RUN = "launch", "cluster run"
_NO_MORE = "The limits of this shell let the program"


class NoFolder(PlainError):
    """The command was given in a folder that was removed."""


class _Parser(argparse.ArgumentParser):
    """Answers a mistake with one sentence that names the options, and exit status 2."""

    def parse_known_args(  # type: ignore[override]  # argparse's overloads differ only in the type of the namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options here, where a subcommand's own options are known."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            takes_program = self.prog.endswith((f" {LAUNCH}", f" {CLUSTER_RUN}"))
            hint = "; the program's own arguments follow after --" if takes_program else ""
            interpreter = str(getattr(options, "program", ""))
            if re.fullmatch(r"(.*/)?python[\d.]*", interpreter):
                hint = f"; leave `{interpreter}` out"
            from distlab.launch import starter_options

            if takes_program and (count := starter_options.count_among(unknown)):
                # The number after it was taken for the program, and the program for an argument too many.
                self.error(f"{count} is --workers here, with each launcher{hint}")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        if self.prog.endswith(f" {LAUNCH}") and message.endswith("required: program"):
            message = "the program is missing, which stands before --: distlab launch PROGRAM -- ITS ARGUMENTS"
        names = [name for action in self._actions for name in action.option_strings if name.startswith("--")]
        self.exit(2, f"{message}; the options are {', '.join(names)}\n")


def subcommands(parser: argparse.ArgumentParser) -> list[str]:
    """Let every package register its subcommands with the parser; returns their names."""
    # Here, so that an interrupt while they are imported ends as any other.
    from course_tools import command as course_command
    from course_tools.grading import command as grading_command
    from course_tools.setup import command as setup_command
    from distlab.cluster import command as cluster_command
    from distlab.costs import command as costs_command
    from distlab.costs.measured import command as measure_command
    from distlab.launch import command as launch_command
    from distlab.quizzes import command as quiz_command

    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    packages = (setup_command, course_command, launch_command, cluster_command, costs_command, measure_command)
    for package in (*packages, grading_command, quiz_command):
        package.add_commands(commands)
    return list(commands.choices)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit status: 2 after one sentence on the error stream for a user's mistake."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of ASCII shows the rest as \u2026
            stream.reconfigure(errors="backslashreplace")
    environment.leave_out_packages_of_others()
    try:
        status = _run(sys.argv[1:] if arguments is None else list(arguments))
        if sys.stdout:  # None where the shell has closed it
            sys.stdout.flush()
        return status
    except PlainError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        if sentence := _sentence(error):
            print(sentence, file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes what is left when it ends
            return 1
        raise
    except (KeyboardInterrupt, Exception) as error:
        if str(error) == "can't start new thread":  # a RuntimeError of Python's
            print(f"{_NO_MORE} start no more threads; see `ulimit -u` and `ulimit -v`.", file=sys.stderr)
            return 1
        if not _was_interrupted(error):
            raise
        print("\nInterrupted.", file=sys.stderr)
        return 130


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether it began with an interrupt: what a library does after one may fail in its own way."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _sentence(error: OSError) -> str | None:
    """What happened, for the faults of a machine that any command can meet."""
    if error.errno == errno.EPIPE:
        return "The output could not be written, since nobody reads it any more."
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{_NO_MORE} open no more files; raise the limit (`ulimit -n 4096`), or start less at once."
    if error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename:
        return refused_write(error)
    if error.errno == errno.ENOSPC:
        return "The output could not be written, since the disk is full."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and error.filename:
        return f"{error.filename} cannot be read or written by you ({error.strerror})."
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error):
        return "There is no folder for temporary files that can be written to; set TMPDIR to one."
    return None


def _run(arguments: list[str]) -> int:
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise NoFolder("The working folder does not exist any more; change to another one.") from error
    parser = _Parser(prog="distlab", description="The tools of the course.")
    subcommands(parser)
    own, program_arguments = _split_at_double_dash(arguments)
    for word in own:
        if word.startswith(("–", "—", "\u2212")):  # as text programs and PDF files write two hyphens
            parser.exit(2, f"{word} begins with a dash, not with two hyphens: type --{word[1:]}\n")
    options = parser.parse_args(own)
    options.program_arguments = program_arguments
    if program_arguments and not getattr(options, "takes_program", False):
        parser.error(f"unrecognized arguments: {' '.join(program_arguments)}")
    with environment.in_use():
        return int(options.run(options))


def _split_at_double_dash(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments of distlab itself, and those after `--`, which belong to the program that is launched."""
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main())
