"""The judge of lab 05: a run that resumes as if it had never stopped, and what a broken checkpoint lacks.

The orders of the images are looked at, and the run is observed while it is interrupted; what a checkpoint lacks, and
what to do with damaged ones, is judged by programs.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from lab_05 import observe
from lab_05.broken_runs import LETTERS, Record, hidden_runs, lettered_runs
from lab_05.given import PARTS
from lab_05.observe import ProcessRecord, TrainingState

from distlab.labs import Answer, Exercise, Lab, Raised, Verdict, not_done, right, wrong
from distlab.labs.answer_errors import AnswerError
from distlab.labs.by_programs import ByPrograms, Mistake, OfPart
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.verdict import hinted

# The images of a step ------------------------------------------------------------------------------------------------

EPOCHS = 12  # by then each image has been in a step, unless it is left out on purpose
EPOCHS_OF_OTHER_SEED, EPOCHS_AFTER_RESTART = 4, 2
Table = dict[int, list[int]]
"""The images of each step."""


class DataOrder(NamedTuple):
    """Images of the data set, images in a batch, seed."""

    images: int
    batch: int
    seed: int

    @property
    def per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return self.images // self.batch

    def steps(self, epoch: int) -> range:
        """Those of an epoch."""
        return range(epoch * self.per_epoch, (epoch + 1) * self.per_epoch)


def numbers_of(step: int, images: int, batch: int, seed: int) -> Array:
    """The numbers of the images of a step: a function of its arguments alone."""
    epoch, place = divmod(step, images // batch)
    order = np.random.default_rng([seed, epoch]).permutation(images)
    return order[place * batch : (place + 1) * batch]


def judge_numbers_of(answer: Answer, generator: np.random.Generator) -> Verdict:
    """All steps of some epochs, asked for in any order, some of them twice; with another seed; after a restart."""
    drawn = []
    for _ in range(2):
        batch = int(generator.integers(3, 6))
        images = batch * int(generator.integers(4, 7)) + int(generator.integers(1, batch))
        drawn.append(DataOrder(images, batch, int(generator.integers(1, 500))))
    for order in drawn:
        steps = generator.permutation(EPOCHS * order.per_epoch).tolist()
        table = asked(answer, order, [*steps, *steps[: order.per_epoch]])
        if hint := hint_of_orders(table, order):
            return wrong(hint)
        again = order._replace(seed=order.seed + 1)
        next_table = asked(answer, again, range(EPOCHS_OF_OTHER_SEED * order.per_epoch))
        if hint := hint_of_seed(table, next_table, order) or hint_of_restart(answer, table, order):
            return wrong(hint)
    return right()


def asked(answer: Answer, order: DataOrder, steps: Sequence[int]) -> Table:
    """The images of each of these steps, some of which may be there twice; raises AnswerError for other values."""
    table: Table = {}
    for step in steps:
        said = answer.call("numbers_of", step, *order)
        numbers = image_numbers(said, order)
        if numbers is None:
            raise AnswerError(
                f"`numbers_of` should give {order.batch} whole numbers for each step, from 0 to {order.images - 1}, in "
                f"one list or array. For step {step} it gives {in_words(said)}."
            )
        if table.setdefault(step, numbers) != numbers:
            raise AnswerError(
                f"Step {step} has other images when it is asked for a second time, after other steps. A resumed run "
                "asks for the later steps only: what may the order depend on?"
            )
    return table


def image_numbers(said: Plain, order: DataOrder) -> list[int] | None:
    """The numbers as a list; None if they are none of this data set, or not as many as in a batch."""
    try:
        numbers = np.asarray(said)
    except ValueError:
        return None
    if numbers.shape != (order.batch,) or numbers.dtype.kind not in "iu":
        return None
    return numbers.tolist() if numbers.min() >= 0 and numbers.max() < order.images else None


def in_words(said: Plain) -> str:
    """A value as a student reads it, and what it is that it should not be."""
    text = " ".join(repr(said).split())[:60]
    try:
        numbers = np.asarray(said)
    except ValueError:
        return text
    if numbers.ndim != 1:
        return f"{text}, which has the shape {numbers.shape}"
    return f"{text}, which are not whole numbers" if numbers.dtype.kind == "f" and numbers.size else text


def hint_of_orders(table: Table, order: DataOrder) -> str | None:
    """What is wrong with the orders of one seed."""
    orders = []
    for step in sorted(table):
        if twice := [image for image in table[step] if table[step].count(image) > 1]:
            return f"Step {step} has image {twice[0]} twice. Are the images drawn, or shuffled?"
    for epoch in range(EPOCHS):
        step_of: dict[int, int] = {}
        for step in order.steps(epoch):
            for image in table[step]:
                if image in step_of:
                    return (
                        f"With {order.images} images and batches of {order.batch}, steps {step_of[image]} and {step} "
                        f"are in the same epoch, and both have image {image}. In which epoch is a step, and at which "
                        "place of it?"
                    )
                step_of[image] = step
        orders.append(list(step_of))
    distances = np.diff(orders, axis=1) % order.images
    if (distances == distances[0, 0]).all() and orders[0] != orders[1]:
        return "The images stay in their order, it only begins elsewhere. What shuffles them?"
    for earlier, later in combinations(range(EPOCHS), 2):
        if orders[later] == orders[earlier]:
            return f"Epoch {later} has the order of epoch {earlier}. What must the order depend on besides the seed?"
        batches, others = ({frozenset(table[step]) for step in order.steps(epoch)} for epoch in (earlier, later))
        if len(batches & others) > order.per_epoch // 2:
            return "The batches change places, but they have the same images in two epochs. What should be shuffled?"
        if change := how_it_follows(orders[earlier], orders[later], order.images):
            return (
                f"Epoch {later} has the order of epoch {earlier}, {change}. What shuffles the images again in each "
                "epoch?"
            )
    if never := set(range(order.images)) - {image for images in orders for image in images}:
        return f"Image {min(never)} is in no step of {EPOCHS} epochs. Are the images shuffled before or after the cut?"
    return None


def how_it_follows(order: list[int], changed: list[int], images: int) -> str | None:
    """How one order follows from another without shuffling: in words, None if it does not."""
    if len(set(np.subtract(changed, order) % images)) == 1:
        return "with the same number added to each image"
    neighbours = set(pairwise(order))
    half = len(neighbours) / 2
    if len(neighbours & set(pairwise(changed))) > half:
        return "beginning elsewhere"
    return "backwards" if len(neighbours & set(pairwise(reversed(changed)))) > half else None


def hint_of_seed(table: Table, next_table: Table, order: DataOrder) -> str | None:
    """What is wrong with the orders of the next seed, which are in `next_table`."""
    seed, other = order.seed, order.seed + 1
    if all(table[step] == numbers for step, numbers in next_table.items()):
        return f"Seeds {seed} and {other} give the same orders. Where does the seed come in?"
    for epoch in range(EPOCHS_OF_OTHER_SEED):
        images, changed = ([image for step in order.steps(epoch) for image in of[step]] for of in (table, next_table))
        if images == changed:
            return (
                f"Epoch {epoch} has the same order with seed {seed} as with seed {other}, other epochs do not. What is "
                "computed from seed and epoch there?"
            )
        if change := how_it_follows(images, changed, order.images):
            return (
                f"Epoch {epoch} has with seed {other} the order of seed {seed}, {change}. What should the seed decide?"
            )
    return None


def hint_of_restart(answer: Answer, table: Table, order: DataOrder) -> str | None:
    """A new process asks for the last epoch first."""
    steps = sorted(table, reverse=True)[: EPOCHS_AFTER_RESTART * order.per_epoch]
    said = answer.inside(observe.numbers_after_restart, [[step, *order] for step in steps])
    if not isinstance(said, list) or len(said) != len(steps):
        return None  # the function's cell is not known, or does not run a second time
    for step, numbers in zip(steps, said, strict=True):
        if image_numbers(numbers, order) != table[step]:
            return (
                f"Step {step} has other images in a new process, which runs your cell again and asks for the last "
                "steps first. What does the order depend on that a new process does not have: a generator that is not "
                "seeded, earlier calls, `hash` of a text?"
            )
    return None


# Run, and resume -----------------------------------------------------------------------------------------------------

TOLERANCE = 1e-5
NAMES = CHECKPOINTS, WEIGHTS, OPTIMIZER, POSITION, RANDOM, LOWEST = (
    "checkpoints",
    "weights",
    "optimizer",
    "position",
    "random state",
    "lowest loss",
)
NO_CHECKPOINT = "There is no checkpoint of a `CheckpointManager` in the folder. Who writes one, and when?"
ERRORS = (
    (
        "DataLossError",
        "Unable to open table file",
        "`restore` needs the name of one checkpoint, and gets the folder. What of the manager names the newest one?",
    ),
    (
        "InvalidArgumentError",
        "ndims",
        "`train_step` needs the numbers of the images of a step. Which method of the training gives them?",
    ),
    (
        "TypeError",
        "list indices must be integers or slices, not .*Variable",
        "`training.step` is a variable, and `numbers` needs a number. What does `int(…)` make of it?",
    ),
)
"""Class and text of errors that common mistakes lead to inside TensorFlow or the training, with their hints."""
Hints = dict[str, str]
"""By part, what is wrong with it."""


def judge_run(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for the checkpoints, and for each part of the state that is there after a restart."""
    every = int(generator.integers(3, 5))
    last_step = 3 * every + int(generator.integers(1, every))
    middle = every + int(generator.integers(1, every))
    # Killed before the first save, then twice between two saves.
    killed = [int(generator.integers(low + 1, low + every)) for low in (0, every, every)]
    plans: list[list[tuple[int, int | None]]] = [
        [(middle, None), (last_step, None), (last_step, None)],
        [*((last_step, after) for after in killed), (last_step, None)],
        [(2 * every, None)],  # the last step is one to save anyway
    ]
    images = generator.normal(size=(20, 4)).astype(np.float32)
    rows = generator.permuted(np.tile(np.arange(20), (observe.MOST_CALLS + 5, 1)), axis=1)[:, :4].tolist()
    labels, weights = generator.integers(0, 3, 20), generator.normal(size=(4, 3)).astype(np.float32)
    data = {"images": images, "labels": labels, "rows": rows, "weights": weights}
    try:
        observed = answer.inside(observe.runs, data, every, last_step, plans)
    except Raised as error:
        if hint := hint_of_error(error):
            return wrong(hint, context="" if error.line is None else f"Line {error.line} of its cell: ")
        raise
    if observed is None:
        return not_done("`run` is still empty.")
    seen = as_record(observed, observe.Runs)
    states = [as_record(state, TrainingState) for state in seen.undisturbed]
    hints: Hints = {}
    for plan, processes in zip(plans, seen.processes, strict=False):  # after one that does not end there are no more
        if not set(hints) - {CHECKPOINTS}:
            records = [as_record(process, ProcessRecord) for process in processes]
            compare(hints, plan, records, states, rows, every)
    if hints.get(CHECKPOINTS) == NO_CHECKPOINT:
        hints = dict.fromkeys(NAMES, NO_CHECKPOINT)
    return hinted({name: hints.get(name) for name in NAMES})


def hint_of_error(error: Raised) -> str | None:
    """What leads to it, if that is known."""
    if match := re.match(r"`Checkpoint` was expecting (\w+) to be a trackable object", error.message):
        return (
            f"`Checkpoint` cannot save `{match[1]}`: it saves variables, optimizers, generators, models, and lists and "
            "dictionaries of these. Which objects of the training change in a step?"
        )
    return next((hint for kind, text, hint in ERRORS if error.kind == kind and re.search(text, error.message)), None)


def compare(
    hints: Hints,
    plan: Sequence[tuple[int, int | None]],
    processes: Sequence[ProcessRecord],
    states: Sequence[TrainingState],
    rows: Sequence[Sequence[int]],
    every: int,
) -> None:
    """Note what is wrong in the first process of a plan that is not as it should be."""
    newest, saved = 0, [0]
    for (last_step, killed_after), process in zip(plan, processes, strict=False):
        if hint := hint_of_endless(process, last_step):
            hints.update(dict.fromkeys(NAMES, hint))
            return
        compare_state(hints, process, states, newest, saved[-2:])
        if set(NAMES[1:]) <= set(hints):  # it restores nothing, or another checkpoint
            return
        end = last_step if killed_after is None else newest + killed_after
        if hint := hint_of_steps(process, rows, newest, end):
            hints[POSITION] = hint
        elif hint := hint_of_saves(process, newest, end, last_step, every):
            hints.setdefault(CHECKPOINTS, hint)
        if hints.get(CHECKPOINTS) == NO_CHECKPOINT:
            return
        at_end = as_record(process.last, TrainingState).weights
        if not set(hints) - {CHECKPOINTS} and killed_after is None and not is_near(at_end, states[end].weights):
            hints[WEIGHTS] = "All is restored, but the weights at the end are others than those of the undisturbed run."
        if of_state := [hint for name, hint in hints.items() if name != CHECKPOINTS]:
            if not newest:  # nothing can be said of a restart
                text = f"{of_state[0]} (This is before the first restart, so no other part can be compared.)"
                hints.update(dict.fromkeys(NAMES, text))
            return
        saved += [newest + after for after in process.saves]
        newest = saved[-1]


def hint_of_endless(process: ProcessRecord, last_step: int) -> str | None:
    """Where steps come again, or without end."""
    if back := [later for step, later in pairwise(process.steps) if later <= step]:
        return f"The run goes back to step {back[0]} while it trains. How often does a process restore?"
    if len(process.numbers) == observe.MOST_CALLS:
        return (
            f"After {len(process.numbers)} steps the run still goes on; it should end after step {last_step}. What "
            "counts?"
        )
    return None


def is_near(array: Any, expected: Any) -> bool:
    """Whether two arrays, numbers or lists of arrays are equal up to rounding."""
    if isinstance(array, list) and isinstance(expected, list):
        return len(array) == len(expected) and all(map(is_near, array, expected))
    return np.shape(array) == np.shape(expected) and np.allclose(array, expected, rtol=TOLERANCE, atol=TOLERANCE)


def compare_state(
    hints: Hints, process: ProcessRecord, states: Sequence[TrainingState], newest: int, saved: Sequence[int]
) -> None:
    """The state at a process's first step; `saved` are the steps of the checkpoints in the folder."""
    state, expected = as_record(process.first, TrainingState), states[newest]

    def is_that_of(step: int, *names: str) -> bool:
        return all(is_near(getattr(state, name), getattr(states[step], name)) for name in names)

    if newest and is_that_of(0, "weights", "averages", "generator", "step"):
        nothing = "A restarted run begins from the start, although there is a checkpoint. Who reads it, and when?"
        hints.update(dict.fromkeys(NAMES[1:], nothing))
        return
    older = [step for step in saved if step != newest and is_that_of(step, "weights")]
    if older and older[-1] and is_that_of(older[-1], "step"):
        hint = f"It resumes after step {older[-1]}, and the newest checkpoint is that of step {newest}."
        hints.update(dict.fromkeys(NAMES[1:], hint))
        return
    if not is_that_of(newest, "weights"):
        hints[WEIGHTS] = "After a restart the weights are those of a new model. Is the model in the checkpoint?"
    if not is_that_of(newest, "averages", "step_count"):
        hints[OPTIMIZER] = (
            f"After a restart Adam has lost its averages, or its step count, which is {state.step_count}. Which object "
            "has them?"
        )
    elif not is_that_of(newest, "learning_rate"):
        hints[OPTIMIZER] = (
            f"After a restart the learning rate is {state.learning_rate:.4g} instead of {expected.learning_rate:.4g}. "
            "Which object has it?"
        )
    if not np.array_equal(state.generator, expected.generator):
        hints[RANDOM] = "After a restart the dropout masks are those of the first steps. Which object draws them?"
    if state.lowest_loss != expected.lowest_loss and not is_that_of(newest, "lowest_loss"):
        hints[LOWEST] = (
            "After a restart the lowest loss so far is infinite. What reads it in `train_step`, and for what?"
        )


def hint_of_steps(process: ProcessRecord, rows: Sequence[Sequence[int]], newest: int, end: int) -> str | None:
    """Which images the steps had, and how many steps there were."""
    expected, numbers = [list(row) for row in rows[newest:end]], process.numbers
    if numbers == expected:
        return None
    if not expected:
        return "It trains although `last_step` is reached already. What should it compare before each step?"
    if numbers[: len(expected)] == expected or numbers == expected[: len(numbers)]:
        return f"It ends after step {newest + len(numbers)}; it should after {end}."
    if newest and numbers[0] in rows and rows.index(numbers[0]) < newest:
        return (
            f"After {newest} steps the run resumes with the images of step {rows.index(numbers[0])}. What remembers "
            "the place?"
        )
    place = next(place for place, of_step in enumerate(numbers) if [of_step] != expected[place : place + 1])
    if numbers[place] in rows:
        return (
            f"Step {newest + place} is trained on the images of step {rows.index(numbers[place])}; the first step is "
            "step 0. Who counts the steps, and which one is next?"
        )
    return (
        f"Step {newest + place} is trained on other images than `training.numbers({newest + place})` gives. What "
        "chooses the images?"
    )


def hint_of_saves(process: ProcessRecord, newest: int, end: int, last_step: int, every: int) -> str | None:
    """After which steps there were checkpoints, and how many were kept."""
    saves = [newest + after for after in process.saves]
    expected = [step for step in range(newest + 1, end + 1) if step % every == 0 or step == last_step]
    twice = [step for step, count in Counter(saves).items() if count > 1]
    most = max(process.checkpoints, default=2)
    if process.saved_when_killed:
        return (
            "A checkpoint is saved while the process is killed. A killed process runs no `finally` and no `except`: "
            "after which steps may you save?"
        )
    if saves == expected and most > 2:
        return f"{most} checkpoints are in the folder at the same time. Which option of the manager limits them?"
    if saves == expected and len(saves) > 1 and process.checkpoints[-1] < 2:
        return "Only one checkpoint is kept. If it is damaged, all is lost: how many should there be?"
    if saves == expected:
        return None
    if not saves:
        return NO_CHECKPOINT
    if not expected and newest == last_step:
        return "The call with nothing left to do saves a checkpoint again. Which call of `save` does it reach?"
    if twice and list(dict.fromkeys(saves)) == expected:
        return f"Step {twice[0]} is saved twice. Which two reasons to save can come together?"
    if saves == list(range(newest + 1, end + 1)):
        return f"A checkpoint is saved after every step; asked for is every {every} steps and the last."
    if saves == expected[-1:] == [last_step]:
        return "There is only one checkpoint, at the end. What does an interruption in the middle leave?"
    if saves == expected[:-1] and expected[-1] == last_step:
        return f"The last step, {last_step}, is not saved. With every {every} steps, it is not its turn."
    return f"Checkpoints are saved after steps {saves}, and should be after steps {expected}."


# What a checkpoint lacks ---------------------------------------------------------------------------------------------

NAMES_OF_PARTS = {part: f"checkpoint {letter}" for letter, part in LETTERS.items()} | {
    "weights": "hidden runs 1",
    "learning rate": "hidden runs 2",
}


class Lacking(OfPart):
    """A call with two runs, of the checkpoint that lacks a part of the state."""

    lacks: str
    where: str
    """What is said before a hint, such as "in other runs like these, "."""


def broken_checkpoints(generator: np.random.Generator) -> list[Lacking]:
    """For each part the lab's own runs, if it has some, and hidden ones."""
    by_part, own = hidden_runs(int(generator.integers(2**63))), lettered_runs()
    cases = []
    for part, name in sorted(NAMES_OF_PARTS.items(), key=lambda item: item[1]):
        lettered = [own[letter] for letter in LETTERS if LETTERS[letter] == part]
        for place, runs in enumerate([*lettered, *by_part[part]]):
            case = Lacking(name, runs["straight"], runs["resumed"])
            case.lacks, case.where = part, "in other runs like these, " if lettered and place else ""
            cases.append(case)
    return cases


def first_difference(straight: Sequence[Record], resumed: Sequence[Record], same_loss: Callable[..., bool]) -> str:
    """What is lacking, in the order in which a step computes its record."""
    before, after = straight[0], resumed[0]
    if after["numbers"] != before["numbers"]:
        return "data position"
    if after["mask"] != before["mask"]:
        return "random state"
    if not same_loss(after["loss"], before["loss"]):
        return "weights"
    if after["learning_rate"] != before["learning_rate"]:
        return "learning rate"
    factors = np.array(after["changes"]) / np.array(before["changes"])
    return "step count" if np.allclose(factors, factors[0]) else "averages"


def lacks(straight: Sequence[Record], resumed: Sequence[Record]) -> str:
    """What the checkpoint lacks, one of `given.PARTS`."""
    return first_difference(straight, resumed, lambda loss, known: bool(np.isclose(loss, known, atol=0)))


LACKS_HINTS = {
    "weights": (
        "The first step has the same images and the same mask, and another loss already. What does that loss depend on?"
    ),
    "averages": (
        "The first step has the same loss, up to rounding, and the same rate; the changes differ, and not all by one "
        "factor. Which quantities in Adam's formula differ from weight to weight?"
    ),
    "step count": (
        "In the first step all changes differ by one factor, up to rounding, and the rate is the same. Which number in "
        "Adam's formula is the same for all weights?"
    ),
    "learning rate": ("Loss, up to rounding, images and mask of the first step agree. Which number there does not?"),
    "data position": "Look at the images of the first step. What follows from them?",
    "random state": "The first step has the same images. What differs that was drawn at random?",
}
"""By what is lacking."""


def not_lacking(case: Lacking, said: Any) -> str:
    """The hint on another part, or on what is none."""
    if not isinstance(said, str) or said not in PARTS:
        return f"{said!r} is none of the names in `lab.given.PARTS`."
    return f"{case.where}it is not the {said}. {LACKS_HINTS[case.lacks]}"


LACKS = ByPrograms(
    lacks,
    broken_checkpoints,
    said=lambda case: "",
    parts=tuple(sorted(NAMES_OF_PARTS.values())),
    split=OfPart.split,
    otherwise=not_lacking,
    mistakes=[
        Mistake(
            lambda case, said: (
                f"{case.where}it is not the {said}. The losses of the first step are equal up to rounding. How do you "
                "compare two such numbers?"
            ),
            lambda straight, resumed: first_difference(straight, resumed, lambda loss, known: loss == known),
        )
    ],
)

# Which checkpoint to use ---------------------------------------------------------------------------------------------

Files = dict[str, Any]
"""A checkpoint's "number", the bytes of its "index" file and of each "data" file; None for a missing file."""


class Folder(NamedTuple):
    """The checkpoints in a folder, in no order, and how many whole ones to keep."""

    checkpoints: Sequence[Files]
    keep: int


EXAMPLE = Folder(
    [
        {"number": 12, "index": 310, "data": [4096, 0]},
        {"number": 9, "index": 310, "data": [4096, 512]},
        {"number": 3, "index": 310, "data": [4096, 512]},
        {"number": 10, "index": None, "data": [4096, 512]},
        {"number": 11, "index": 310, "data": [4096, 512]},
    ],
    keep=2,
)
FIRST = Folder([{"number": 7, "index": None, "data": [4096]}, {"number": 0, "index": 310, "data": [4096]}], keep=1)
"""Saved before the first step, with one data file: 0 is a number like any other."""
WHOLE, NO_INDEX, EMPTY_INDEX, NO_DATA, EMPTY_DATA = range(5)
# From the oldest to the newest checkpoint, and how many to keep.
KINDS: tuple[tuple[list[int], int], ...] = (
    ([WHOLE, WHOLE, NO_DATA, WHOLE, EMPTY_DATA, WHOLE, NO_INDEX, EMPTY_INDEX], 2),
    ([EMPTY_DATA, WHOLE, NO_INDEX, WHOLE, NO_DATA], 3),
    ([NO_INDEX, EMPTY_DATA, NO_DATA, EMPTY_INDEX], 2),
    ([WHOLE, WHOLE, EMPTY_INDEX, WHOLE], 1),
    ([WHOLE, WHOLE, WHOLE, WHOLE, EMPTY_DATA], 3),
    ([], 2),
)


def is_whole(files: Files) -> bool:
    """Whether all files are there and none is empty."""
    return bool(files["index"]) and all(files["data"])


def housekeeping(checkpoints: Sequence[Files], keep: int) -> dict[str, Any]:
    """What to resume from, the newest whole one; to delete, all older ones except the `keep` newest whole ones."""
    whole = sorted(files["number"] for files in checkpoints if is_whole(files))
    if not whole:
        return {"resume": None, "delete": []}
    older = sorted(files["number"] for files in checkpoints if files["number"] < whole[-1])
    return {"resume": whole[-1], "delete": [number for number in older if number not in whole[-keep:]]}


def folders(generator: np.random.Generator) -> list[Folder]:
    """The example, and drawn ones of all kinds."""

    def drawn(kinds: Sequence[int], keep: int) -> Folder:
        numbers = np.sort(generator.choice(np.arange(1, 130), len(kinds), replace=False)).tolist()
        data_files = int(generator.integers(2, 4))
        checkpoints: list[Files] = []
        for number, kind in zip(numbers, kinds, strict=True):
            data: list[int | None] = generator.integers(1000, 9000, data_files).tolist()
            if kind in (NO_DATA, EMPTY_DATA):
                data[int(generator.integers(data_files))] = None if kind == NO_DATA else 0
            index = {NO_INDEX: None, EMPTY_INDEX: 0}.get(kind, int(generator.integers(200, 900)))
            checkpoints.append({"number": number, "index": index, "data": data})
        return Folder([checkpoints[place] for place in generator.permutation(len(kinds))], keep)

    of_kinds = [drawn(kinds, keep) for kinds, keep in KINDS]
    at_random = [drawn(generator.integers(5, size=9).tolist(), int(generator.integers(1, 4))) for _ in range(4)]
    return [EXAMPLE, FIRST, *of_kinds, *at_random]


def in_any_order(answer: Answer, folder: Folder) -> Plain:
    """What `housekeeping` gives; numbers to delete are sorted."""
    said = answer.call("housekeeping", *folder)
    if isinstance(said, dict) and "delete" in said:
        delete = said["delete"].tolist() if isinstance(said["delete"], np.ndarray) else said["delete"]
        if isinstance(delete, (list, tuple)) and all(type(number) is int for number in delete):
            delete = sorted(delete)
        return {**said, "delete": delete}
    return said


def with_folder(hint: Callable[[Folder, Any], str]) -> Callable[[Folder, Any], str]:
    """A hint after the words that say for which folder."""

    def text(folder: Folder, said: Any) -> str:
        whole = sorted(files["number"] for files in folder.checkpoints if is_whole(files))
        damaged = sorted(files["number"] for files in folder.checkpoints if not is_whole(files))
        return f"with whole ones {whole}, damaged ones {damaged} and keep={folder.keep}, {hint(folder, said)}"

    return text


def of_resume(folder: Folder, said: Any) -> str:
    """What is wrong with what to resume from."""
    expected = housekeeping(*folder)["resume"]
    by_number = {files["number"]: files for files in folder.checkpoints}
    if said is None:
        return f"nothing is chosen, although checkpoint {expected} is whole. Which files must it have?"
    if type(said) is not int or said not in by_number:
        if expected is None:
            return f"it is {said!r}, but no checkpoint is whole. What does `restore` do at a first start?"
        return f"it is {said!r}, which is not the number of a checkpoint in the folder."
    if not by_number[said]["index"]:
        return f"checkpoint {said} has no index file, or an empty one. Can it be read?"
    if not all(by_number[said]["data"]):
        return f"checkpoint {said} lacks a data file, or has an empty one. Can it be read?"
    return f"checkpoint {said} is whole, but {expected} is newer and whole too."


def of_delete(folder: Folder, said: Any) -> str:
    """What is wrong with what to delete."""
    numbers = {files["number"] for files in folder.checkpoints}
    whole = {files["number"] for files in folder.checkpoints if is_whole(files)}
    expected = set(housekeeping(*folder)["delete"])
    if not isinstance(said, (list, tuple)):
        return f"this is {said!r}, and should be a list of numbers."
    if unknown := [number for number in said if type(number) is not int or number not in numbers]:
        return f"{unknown[0]!r} is not the number of a checkpoint in the folder."
    if twice := [number for number in said if said.count(number) > 1]:
        return f"{twice[0]} is in the list twice. What does the second deletion of a file do?"
    chosen = set(said)
    if chosen and not whole:
        return "no checkpoint is whole, and something is deleted. What may the newest one still become?"
    if not chosen:
        return "nothing is deleted. What of these would nobody use any more?"
    if newer := sorted(chosen - expected - whole):
        return f"{newer[-1]} may be in the middle of being written: it is newer than the newest whole one."
    if kept := sorted(chosen - expected):
        return f"{kept[-1]} is deleted, but it is one of the newest whole ones, which you should keep."
    if damaged := sorted(expected - chosen - whole):
        return f"{damaged[-1]} is damaged and older than the newest whole one: who would ever use it?"
    old = max(expected - chosen)
    return f"{old} is kept, but there are enough newer whole ones. How many does `keep` allow?"


HOUSEKEEPING = ByPrograms(
    housekeeping,
    folders,
    said=lambda folder: "",
    parts=("resume", "delete"),
    observe=in_any_order,
    otherwise={"resume": with_folder(of_resume), "delete": with_folder(of_delete)},
    mistakes=[],
)

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "numbers_of":
        return "numbers_of(step, images, batch, seed)\n    a list or array of `batch` numbers"
    if name == "run":
        return "run(training, folder, last_step, every)\n    nothing: it changes `training`, and writes to `folder`"
    if name == "lacks":
        return "lacks(straight, resumed)\n    one of lab.given.PARTS"
    lines = [f"        {files}," for files in EXAMPLE.checkpoints]
    call = ["housekeeping(", "    [", *lines, "    ],", f"    keep={EXAMPLE.keep},", ")"]
    return "\n".join([*call, str(housekeeping(*EXAMPLE))])


LAB = Lab(
    "05_save_and_load",
    [
        Exercise("numbers_of", 3, judge_numbers_of),
        Exercise("run", 6, judge_run),
        Exercise("lacks", 6, LACKS),
        Exercise("housekeeping", 4, HOUSEKEEPING),
    ],
    tensorflow=True,
    target=target,
)
