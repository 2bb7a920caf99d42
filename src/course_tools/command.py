"""`distlab notebooks`, `labs`, `release`, `site`, `slides`, `pages`, `map`, `bench`, `lab`, `progress`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from course_tools import execute_command, user_folders
from course_tools.execute_command import NOTEBOOKS, require_notebooks
from distlab.runtime import environment, processes, startup_notes
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

LABS = Path("labs")
BUILD = Path("build")
SECONDS_TO_RECORD = 3600.0


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands to the parser of `distlab`."""
    execute_command.add_command(commands)
    notebooks = commands.add_parser("notebooks", help="write the notebooks with outputs from their text sources")
    notebooks.add_argument("--only", help='some notebooks by number or name: "03" or "02,04"')
    notebooks.add_argument("--force", action="store_true", help="also while other programs use the processors")
    notebooks.add_argument(
        "--tags", action="store_true", help="only give the cells their new tags; no text or code may have changed"
    )
    notebooks.set_defaults(run=_notebooks)

    record = commands.add_parser("record-cluster", help="run notebook 15 on the cluster that runs, and record it")
    record.add_argument("--force", action="store_true", help="also while other programs use the processors")
    record.set_defaults(run=_record_cluster)
    labs = commands.add_parser("labs", help="write the labs' notebooks from their text sources")
    labs.set_defaults(run=_labs)
    release = commands.add_parser("release", help="write the labs to hand out to build/release")
    release.set_defaults(run=_release)
    for command in (labs, release):
        command.add_argument("--only", help='some labs by number: "06" or "02,06"')

    site = commands.add_parser(
        "site",
        help="write the course's site to build/site",
        epilog="Exit status: 0, or 1 when the site was written and something in it is wrong, such as a link.",
    )
    site.add_argument("--executed", action="store_true", help="with the outputs and times of the last `make execute`")
    site.add_argument("--no-solutions", action="store_true", help="leave the solutions of the labs out")
    site.set_defaults(run=_site)
    slides = commands.add_parser("slides", help="write a deck of slides for each chapter to build/slides")
    slides.add_argument("--only", help='some chapters by number or name: "03" or "02,04"')
    slides.add_argument("--executed", action="store_true", help="with the outputs of the last `make execute`")
    slides.set_defaults(run=_slides)
    pages = commands.add_parser("pages", help="write HTML pages of the committed notebooks, as they are")
    pages.set_defaults(run=_pages)
    readme_tables = commands.add_parser(
        "map", help="write the tables of the README, docs/teaching.md and docs/sources.md"
    )
    readme_tables.set_defaults(run=_map)
    bench = commands.add_parser("bench", help="measure the course; writes build/bench.json and build/bench.html")
    bench.add_argument("--only", help='some parts by name: "training,start"; all by default')
    bench.add_argument(
        "--release", action="store_true", help="write the figures to docs/, as those of the last release"
    )
    bench.set_defaults(run=_bench)
    lab = commands.add_parser("lab", help="open JupyterLab on your own copy of the notebooks and labs")
    lab.add_argument("--fresh", help='give all files of a chapter back as they were, and end: "03"')
    lab.add_argument("--copy-only", action="store_true", help="bring the copy up to date, for another server to open")
    lab.set_defaults(run=_lab)
    progress = commands.add_parser(
        "progress", help="show which chapters of your copy ran and which exercises are solved"
    )
    progress.set_defaults(run=_progress)


def _notebooks(options: argparse.Namespace) -> int:
    from course_tools import notebooks, recording

    processes.end_on_signals()
    for source in notebooks.sources(NOTEBOOKS, options.only):
        if options.tags:
            print(notebooks.update_tags(source), flush=True)
            continue
        if not options.force:
            notebooks.require_idle()
        # In a process of its own: nbclient has signals ask for the kernel's end, and fails then.
        command = [sys.executable, "-P", "-m", "course_tools.recording", str(source)]
        try:
            finished = processes.run(command, SECONDS_TO_RECORD)
        except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
            print(f"\nInterrupted; {notebooks.notebook_of(source)} is as it was.", flush=True)
            return int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
        if finished.status == recording.REFUSED:
            raise notebooks.NotRecorded(finished.output.strip().splitlines()[-1])
        print(notebooks.notebook_of(source) if finished.status == 0 else finished.output, flush=True)
        if finished.status:
            return 1
    return 0


def _record_cluster(options: argparse.Namespace) -> int:
    from course_tools import notebooks
    from distlab import cluster

    processes.end_on_signals()
    if cluster.find() is None:
        raise PlainError("No cluster runs; start one with 'make cluster'.")
    if not options.force:
        notebooks.require_idle()
    [source] = notebooks.sources(NOTEBOOKS, "15")
    # In a process of its own, as in `_notebooks`.
    command = [sys.executable, "-P", "-m", "course_tools.cluster_record", str(source.resolve())]
    finished = processes.run(command, SECONDS_TO_RECORD)
    print("Recorded; `make notebooks ONLY=15` shows it." if finished.status == 0 else finished.output, flush=True)
    return int(finished.status != 0)


def _labs(options: argparse.Namespace) -> int:
    from course_tools import lab_sources

    for source in lab_sources.chosen(LABS, options.only):
        for file in lab_sources.regenerate(source):
            print(file, flush=True)
    return 0


def _release(options: argparse.Namespace) -> int:
    from course_tools import git_files, lab_sources

    processes.end_on_signals()
    folder = user_folders.require_folder(user_folders.announced("build", "the labs to hand out go") / "release")
    left_out: list[Path] = []
    kept: list[Path] = []
    with startup_notes.hidden():
        paths = lab_sources.release(lab_sources.chosen(LABS, options.only), folder, left_out.append, kept.append)
    if not git_files.known(LABS):
        print("Git does not know this course, so all files next to the labs' notebooks are handed out, your own too.")
    for file in left_out:
        print(f"Not handed out: {file}, which git does not know. If students need it, run `git add {file}` first.")
    for place in kept:
        print(
            f"Labs that differ from what the last release wrote are kept in {place}; tasks are changed in {LABS}/src."
        )
    print("\n".join(map(str, paths)))
    return 0


def _site(options: argparse.Namespace) -> int:
    from course_tools import runner
    from course_tools.site import build, sources

    require_notebooks(runner.choose(NOTEBOOKS))
    folder = user_folders.announced("build", "the site goes")
    executed = folder / "executed" if options.executed else None
    if executed and (numbers := sources.chapters_without_run(Path.cwd(), executed)):
        print(f"With the committed outputs, since they have no newer run that came to its end: {', '.join(numbers)}.")
    site = build.build(Path.cwd(), folder, executed, solutions=not options.no_solutions)
    for warning in site.warnings:
        print(warning)
    print(site.index)
    return 1 if site.warnings else 0


def _slides(options: argparse.Namespace) -> int:
    from course_tools import runner
    from course_tools.slides import build

    notebooks = runner.choose(NOTEBOOKS, options.only)
    require_notebooks(notebooks)
    folder = user_folders.announced("build", "the slides go")
    decks = build.build(notebooks, folder / "slides", folder / "executed" if options.executed else None)
    print("\n".join([*decks.problems, str(decks.index)]))
    return 0 if len(decks.pages) == len(notebooks) else 1


def _pages(options: argparse.Namespace) -> int:
    from nbformat.reader import NotJSONError

    from course_tools import html_pages, runner
    from course_tools.site.chapters import how_to_repair

    files = runner.choose(NOTEBOOKS)
    require_notebooks(files)
    pages = user_folders.require_folder(user_folders.announced("build", "the pages go") / "html")
    html_pages.write_glossary(NOTEBOOKS, pages)
    damaged = []
    for notebook in files:
        try:
            missing = html_pages.write_page(notebook, pages / f"{notebook.stem}.html", NOTEBOOKS)
            print(pages / f"{notebook.stem}.html", *missing, sep="\n")
        except NotJSONError:
            damaged.append(f"{notebook} cannot be read as a notebook; {how_to_repair(notebook)}.")
    print("\n".join(damaged), end="\n" if damaged else "")
    return 1 if damaged else 0


def _map(options: argparse.Namespace) -> int:
    from course_tools import readme_tables, source_tables

    print(readme_tables.write(Path("README.md"), Path("docs") / "teaching.md", BUILD / "report.json"))
    print(source_tables.write(Path("docs") / "sources.md"))
    return 0


def _bench(options: argparse.Namespace) -> int:
    from course_tools.bench import parts, release

    if options.release:
        print(release.write(BUILD / "bench.json", Path("docs")))
        return 0
    names = parts.chosen(options.only)
    processes.end_on_signals()
    worse = parts.run(names, NOTEBOOKS, LABS, BUILD, lambda line: print(line, flush=True))
    print("\n".join([*worse, f"{BUILD / 'bench.json'}\n{BUILD / 'bench.html'}"]))
    return 0


def _lab(options: argparse.Namespace) -> int:
    from course_tools import jupyterlab_server, working_copy
    from distlab import devices

    devices.require_loopback()
    devices.require_processes()
    environment.choose_legacy_keras()
    course = Path.cwd()
    fresh = working_copy.chapter_files(course, options.fresh) if options.fresh else []
    copy = user_folders.announced(working_copy.NAME, "your working copy goes").absolute()
    changed_in_both = working_copy.update(
        course,
        copy,
        lambda kept: print(f"The course's file replaces yours, which differs from it and is kept: {kept}"),
        lambda left: print(f"{left}: the course no longer has this file under this name; yours stays as it is."),
    )
    for name in sorted(set(changed_in_both) - set(fresh)):
        number = Path(name).parts[1][:2]
        fix = f"`make lab FRESH={number}` gives you the course's, and keeps yours under another name"
        if not working_copy.is_of_chapter(name):
            fix = "Rename or remove yours, and the next `make lab` gives you the course's"
        print(f"{copy / name} differs from the course's file; yours stays. {fix}.")
    if fresh:
        return _give_back(course, copy, fresh)
    print(f"Your working copy is {copy}; what you run there leaves the course's files as they are.", flush=True)
    if options.copy_only:
        return 0
    return jupyterlab_server.open_copy(copy)


def _progress(options: argparse.Namespace) -> int:
    from course_tools import student_progress, working_copy

    copy = user_folders.user_folder(working_copy.NAME)
    if not copy.is_dir():
        print(f"There is no working copy {copy} yet; `make lab` makes it.", file=sys.stderr)
        return 2
    print(student_progress.table(student_progress.progress(copy)))
    return 0


def _give_back(course: Path, copy: Path, names: list[str]) -> int:
    from course_tools import jupyterlab_server, working_copy

    if differing := working_copy.differing(course, copy, names):
        print(f"The course's files replace these of yours, kept under other names: {', '.join(differing)}.")
        if sys.stdin.isatty() and input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing was changed.")
            return 1
    for kept in working_copy.give_back(course, copy, names):
        print(f"Kept: {kept}")
    number = Path(names[0]).parts[1][:2]
    then = "`make lab` without FRESH opens JupyterLab"
    if jupyterlab_server.running_on(copy):
        then = "JupyterLab is open: take File > Reload Notebook from Disk there"
    print(f"All files of chapter {number} are as in the course; {then}.")
    return 0
