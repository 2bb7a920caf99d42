"""Compare the new judges with the recorded verdicts of the old ones, for the labs whose judge is one file.

    python -m tests.golden.moved 10

The answers are those of the commit before a lab's judge was moved. State and share must be equal and nothing that was
rejected may be right, except for the answers that `exceptions.md` lists, one by one or `*` for all of an exercise; of
all other hints at least 95 % must be the same.
Numbers, capitals and full stops in hints are not compared, nor the words before them that say in which case they hold.
"""

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
LEAST = 0.95
WHERE = re.compile(r"^(Right [^.]*; wrong with [^.]*\.|.* are enough\.|.* needs to hold only #|The result is right\.) ")
"""Words before a hint that say in which case it holds, and by how much."""
EXCEPTION = re.compile(r"^\| (\d\d) \| `(\w+)` \| `?([^|`]+?)`? \|", re.MULTILINE)


def is_moved(number: str) -> bool:
    """Whether the lab's judge is one file."""
    return any(ROOT.glob(f"labs/{number}_*/judge.py"))


def before_the_move(number: str, folder: Path) -> Path:
    """The old judge and answers of a lab, from the parent of the commit that removed them, in a folder."""
    [topic] = ROOT.glob(f"labs/{number}_*")
    old = f"labs/{topic.name}"
    git = ["git", "-C", str(ROOT)]
    words = ["log", "-1", "--format=%H", "--diff-filter=D", "--", f"{old}/judge/lab.py"]
    removed = subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
    commit = f"{removed}^" if removed else "HEAD"
    words = ["archive", commit, f"{old}/judge", f"{old}/tests", "src/distlab/labs"]
    packed = subprocess.run([*git, *words], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / old


def judged(number: str, module: str, folder: str) -> list[tuple[str, str, list]]:
    """As `record.judge`: the old answers of a module, judged by the new judge."""
    from distlab import labs
    from distlab.labs import registry
    from tests.golden import record

    lab = registry.lab(number)  # before its package is that of the old judge
    kept = [registry.MODULES[number], *registry.observers(number)]  # the answers meet the fakes that the judge runs
    for name in [name for name in sys.modules if name.split(".")[0] == f"lab_{number}" and name not in kept]:
        del sys.modules[name]
    # What only the old judges import may be gone; their modules are imported, and never run.
    labs.__path__.insert(0, str(Path(folder).parents[1] / "src" / "distlab" / "labs"))
    sys.modules.pop("distlab.labs.number_judge", None)
    registry.importable(f"lab_{number}", Path(folder) / "judge")
    registry.importable(f"lab_{number}_tests", Path(folder) / "tests")
    return record.judge(number, module, lab)


def hints(text: str) -> list[str]:
    """The end of each line of a verdict, where its hint is, without numbers and repetitions."""
    ends = [line.rpartition(": ")[2] for line in re.sub(r"\d[\d,.]*(e[+-]\d+)?", "#", text).splitlines()]
    ends = [WHERE.sub("", end).strip(".").lower() for end in ends]
    return sorted({end for end in ends if not re.search(r"parts? (is|are) right|^the same as for|must be right", end)})


def compared(number: str, modules: list[str], show_hints: bool = False) -> list[str]:
    """What differs and is no exception, and a last line with the counts; other hints only if they are to be shown."""
    recorded = json.loads((HERE / "labs" / f"{number}.json").read_text())
    listed = {row[1:] for row in EXCEPTION.findall((HERE / "exceptions.md").read_text()) if row[0] == number}
    found, counts, used = [], dict.fromkeys(("answers", "states", "shares", "hints", "exceptions"), 0), set()
    with tempfile.TemporaryDirectory() as temporary:
        folder = before_the_move(number, Path(temporary))
        verdicts = []
        for module in modules:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                verdicts += process.submit(judged, number, module, str(folder)).result()
    seen: dict[tuple[str, str], int] = {}
    for exercise, title, of_seeds in verdicts:
        if exercise not in recorded:  # it has gone, or asks for something else now
            continue
        seen[exercise, title] = seen.get((exercise, title), 0) + 1
        name = f"{title} #{seen[exercise, title]}" if seen[exercise, title] > 1 else title
        exception = next((row for row in ((exercise, title), (exercise, "*")) if row in listed), None)
        for before, now in zip(recorded[exercise][name], of_seeds, strict=True):
            counts["exceptions" if exception else "answers"] += 1
            is_same = [before[0] == now[0], abs(before[1] - now[1]) < 1e-6]
            is_same.append(all(is_same) and (now[0] == "right" or hints(before[2]) == hints(now[2])))
            if exception:
                used |= set() if all(is_same) else {exception}
                continue
            for count, same in zip(("states", "shares", "hints"), is_same, strict=True):
                counts[count] += same
            if all(is_same):
                continue
            if not all(is_same[:2]):
                found.append(f"{number} {exercise} {name}:\n  was {before}\n  is  {now}")
            elif show_hints:
                found.append(f"{number} {exercise} {name}: another hint\n  was {before[2]}\n  is  {now[2]}")
    found += [f"{number}: {exercise} {title} is as before, and no exception" for exercise, title in listed - used]
    if counts["hints"] < LEAST * counts["answers"]:
        found.append(f"{number}: less than {LEAST:.0%} of the hints are the same")
    return [*found, f"{number}: " + ", ".join(f"{count} {name}" for name, count in counts.items())]


if __name__ == "__main__":
    from tests.golden.record import MODULES

    for number in sys.argv[1:]:
        print("\n".join(compared(number, MODULES[number], show_hints=True)), flush=True)
