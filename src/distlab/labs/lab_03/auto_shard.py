"""Who sees how many images under which auto-shard policy: the table of lab 03 and its judge."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.verdict import Verdict, parts, right, wrong

POLICIES = ("OFF", "DATA", "FILE", "AUTO")


def samples_seen(policy: str, images_per_file: Sequence[int], workers: int, batch: int) -> list[int] | None:
    """How many images each worker is given in one epoch, of files that the pipeline reads and batches.

    Under DATA a worker keeps every `workers`-th batch, under FILE every `workers`-th file, and AUTO is FILE, since
    files are read; None where TensorFlow refuses, because there are fewer files than workers.
    """
    total = sum(images_per_file)
    if policy == "OFF":
        return [total] * workers
    if policy == "DATA":
        sizes = [min(batch, total - at) for at in range(0, total, batch)]
        return [sum(sizes[worker::workers]) for worker in range(workers)]
    if len(images_per_file) < workers:
        return None
    return [sum(images_per_file[worker::workers]) for worker in range(workers)]


def judge_samples(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A fifth of the points for each policy, and for too few files."""
    workers, batch = int(generator.integers(2, 4)), int(generator.integers(3, 6))
    files = generator.integers(5, 30, int(generator.integers(2, 4)) * workers + 1).tolist()
    cases = {policy: [(policy, files, workers, batch), (policy, [7, 12, 9, 4, 34], 2, 4)] for policy in POLICIES}
    cases["fewer files than workers"] = [("FILE", [40, 20], 3, 4), ("AUTO", [64], 2, 4)]
    return parts({name: _verdict_on_case(answer, group) for name, group in cases.items()})


def _verdict_on_case(answer: Answer, group: Sequence[tuple]) -> Verdict:
    for case in group:
        given = answer.call("samples_seen", *case, none_is_an_answer=True)
        true = samples_seen(*case)
        if isinstance(given, (tuple, np.ndarray)):
            given = np.ravel(given).tolist() if isinstance(given, np.ndarray) else list(given)
        if given == true:
            continue
        policy, files, workers, batch = case
        where = f"{given} for {policy}, files of {files} images, {workers} workers, batches of {batch}"
        return wrong(f"{where}: {_hint_of_samples(given, *case)}")
    return right()


def _hint_of_samples(given: object, policy: str, files: Sequence[int], workers: int, batch: int) -> str:
    total = sum(files)
    true = samples_seen(policy, files, workers, batch)
    if true is None:
        return "somebody would have no file at all. What does TensorFlow do then?"
    if given is None:
        return "there are enough files, so nothing is refused."
    is_list = isinstance(given, list) and len(given) == workers
    if not is_list or not all(isinstance(count, (int, float)) for count in given):
        return f"one number for each of {workers} workers is wanted, in a list."
    for policies, mistaken, hint in _mistakes(files, workers, batch):
        if policy in policies and given == mistaken:
            return hint
    return f"they add up to {sum(given)} of {total} images."


def _mistakes(files: Sequence[int], workers: int, batch: int) -> list[tuple[tuple[str, ...], list[int] | None, str]]:
    """What usual mistakes give, under which policies, with their hints."""
    total = sum(files)
    by_image = [len(range(worker, total, workers)) for worker in range(workers)]
    by_data, by_file = (samples_seen(policy, files, workers, batch) for policy in ("DATA", "FILE"))
    equal = [len(part) for part in np.array_split(np.arange(total), workers)]
    halves_of_batches = [sum(map(len, part)) for part in _connected(_batches(total, batch), workers)]
    halves_of_files = [sum(part) for part in _connected(list(files), workers)]
    return [
        (("OFF",), equal, "with OFF nothing is rewritten. What does a pipeline read that nobody has cut?"),
        (("DATA",), by_image, "what is dealt out are whole batches, not single images."),
        (("DATA",), halves_of_batches, "the batches are dealt out like cards, not cut into connected parts."),
        (("FILE", "AUTO"), halves_of_files, "files are dealt out like cards, not cut into connected parts."),
        (("FILE", "AUTO"), [len(files[at::workers]) for at in range(workers)], "these are files; what is in them?"),
        (POLICIES, [total] * workers, "this would be OFF."),
        (("AUTO",), by_data, "this would be DATA. The pipeline reads files: what does AUTO try first?"),
        (POLICIES, by_data, "this would be DATA."),
        (POLICIES, by_file, "this would be FILE."),
    ]


def _batches(total: int, batch: int) -> list[range]:
    return [range(at, min(at + batch, total)) for at in range(0, total, batch)]


def _connected(things: list, count: int) -> list[list]:
    bounds = np.cumsum([0] + [len(part) for part in np.array_split(np.arange(len(things)), count)])
    return [things[start:stop] for start, stop in pairwise(bounds)]
