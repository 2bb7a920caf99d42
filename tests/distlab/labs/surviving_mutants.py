"""The mutants of solutions that the checks accept, by lab and exercise, each with the reason why it is right."""

OVERWRITTEN = "each name gets another value in any case"
ORDER = "min and max do not depend on the order of their arguments"
PRODUCT = "a product does not depend on the order of its factors"
LENGTH = "both have the same length"
NEAR = "two numbers are near each other in either order"
ANY_FACTOR = "if all factors are equal, any of them is"
SAME_VARIABLE = "the checkpoint's step is the variable of the training"
WHOLE = "a count that divides the batch leaves a whole number of examples, so nothing is cut off"

TIE = "the text leaves open what a fault does at the very moment at which something ends"
TOLERANCE = "the rounding is less than the 3 % that the text allows"

_RATES = (
    "rates = {{'synchronous': workers * steps / np.sum(ends[:, -1] + all_reduce), 'backup workers': needed * steps / "
    "np.sum(ends[:, needed - 1] + all_reduce), 'asynchronous': min({})}}"
)
SURVIVORS: dict[tuple[str, str], dict[str, str]] = {
    ("03", "numbers"): {
        "global_batch_size = steps_per_epoch = updates = images_in_the_last_batch = None  →  pass": OVERWRITTEN,
    },
    ("03", "samples_seen"): {
        "parts = [min(batch, total - start) for start in range(0, total, batch)]  →  "
        "parts = [min(total - start, batch) for start in range(0, total, batch)]": ORDER,
    },
    ("04", "masked_losses"): {
        "return [np.sum(own * mask) / words for own, mask in zip(losses, masks, strict=True)]  →  "
        "return [np.sum(own * mask) / words for own, mask in zip(masks, losses, strict=True)]": PRODUCT,
    },
    ("05", "lacks"): {
        "if not np.isclose(first['loss'], expected['loss']):  →  "
        "if not np.isclose(expected['loss'], first['loss']):": NEAR,
        "if not np.isclose(first['learning_rate'], expected['learning_rate']):  →  "
        "if not np.isclose(expected['learning_rate'], first['learning_rate']):": NEAR,
        "return 'step count' if np.allclose(factors, factors[0]) else 'averages'  →  "
        "return 'step count' if np.allclose(factors[0], factors) else 'averages'": NEAR,
        "return 'step count' if np.allclose(factors, factors[0]) else 'averages'  →  "
        "return 'step count' if np.allclose(factors, factors[1]) else 'averages'": ANY_FACTOR,
        "return 'step count' if np.allclose(factors, factors[0]) else 'averages'  →  "
        "return 'step count' if np.allclose(factors, factors[-1]) else 'averages'": ANY_FACTOR,
    },
    ("05", "run"): {
        "while int(training.step) < last_step:  →  while int(checkpoint.step) < last_step:": SAME_VARIABLE,
        "training.train_step(training.numbers(int(training.step)))  →  "
        "training.train_step(training.numbers(int(checkpoint.step)))": SAME_VARIABLE,
        "if int(training.step) % every == 0 or int(training.step) == last_step:  →  "
        "if int(checkpoint.step) % every == 0 or int(training.step) == last_step:": SAME_VARIABLE,
        "if int(training.step) % every == 0 or int(training.step) == last_step:  →  "
        "if int(training.step) % every == 0 or int(checkpoint.step) == last_step:": SAME_VARIABLE,
    },
    ("05", "housekeeping"): {
        "older = [files['number'] for files in checkpoints if files['number'] < whole[-1]]  →  "
        "older = [files['number'] for files in checkpoints if files['number'] <= whole[-1]]": (
            "the newest whole one is among those to keep"
        ),
    },
    ("06", "halving_doubling_all_reduce"): {
        "low, high = (0, len(total))  →  low, high = (0, len(array))": LENGTH,
        "if rank.index > partner:  →  if rank.index >= partner:": "no rank is its own partner",
        "if rank.index > partner:  →  if rank.index <= partner:": "either partner may keep the lower half",
    },
    ("08", "staleness"): {
        f"version, version_read, stale = (0, {{}}, [])  →  version, version_read, stale = ({first}, {{}}, [])": (
            "a staleness is a difference of two versions"
        )
        for first in (1, -1)
    },
    ("08", "choose"): {
        "rates, choice = (dict.fromkeys(('synchronous', 'backup workers', 'asynchronous')), None)  →  "
        "pass": OVERWRITTEN,
        _RATES.format("np.sum(steps / seconds.sum(axis=0)), 1 / server")
        + "  →  "
        + _RATES.format("1 / server, np.sum(steps / seconds.sum(axis=0))"): ORDER,
        "if times_dropped.max() <= steps / 2:  →  if times_dropped.max() <= steps // 2:": (
            "a whole number is not above a half exactly if it is not above its whole part"
        ),
    },
    ("08", "next_shares"): {
        "following = np.ones(len(shares), int)  →  following = np.ones(len(seconds_per_image), int)": LENGTH,
    },
    ("10", "plan"): {
        "per_replica_batch = global_batch = steps_per_epoch = learning_rate = None  →  pass": OVERWRITTEN,
        "per_replica_batch = min(fits, worthwhile // ranks)  →  "
        "per_replica_batch = min(worthwhile // ranks, fits)": ORDER,
    },
    ("10", "noise_scale"): {
        "squared_gradient = variance = scale = None  →  pass": OVERWRITTEN,
        "scale = variance / squared_gradient if squared_gradient > 0 else float('inf')  →  "
        "scale = variance / squared_gradient if squared_gradient >= 0 else float('inf')": (
            "NumPy's number divided by 0 is infinite too"
        ),
    },
    ("11", "amdahl"): {
        "columns = np.stack([np.ones(len(ranks)), 1 / ranks], axis=1)  →  "
        "columns = np.stack([np.ones(len(seconds)), 1 / ranks], axis=1)": LENGTH,
        "(serial, parallel), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(ranks)))  →  "
        "(serial, parallel), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(seconds)))": LENGTH,
    },
    ("11", "alpha_beta"): {
        "scale = columns.max(axis=0)  →  scale = columns.min(axis=0)": "any scale is divided out",
        "found, *_ = np.linalg.lstsq(columns / scale, np.ones(len(sizes)))  →  "
        "found, *_ = np.linalg.lstsq(columns / scale, np.ones(len(columns)))": LENGTH,
    },
    ("11", "predicted"): {
        "return serial + parallel / ranks + steps * (latency + nbytes / ranks * seconds_per_byte)  →  "
        "return serial + parallel / ranks + steps * (latency + nbytes // ranks * seconds_per_byte)": (
            "a part of a byte takes less than a thousandth of a latency"
        ),
    },
    ("12", "one_forward_one_backward"): {
        "ahead = min(stages - stage - 1, micro_batches)  →  ahead = min(micro_batches, stages - stage - 1)": ORDER,
    },
    ("12", "plan"): {
        "micro_batches = seconds = bubble = None  →  pass": OVERWRITTEN,
        "dividing = [count for count in range(1, batch + 1) if batch % count == 0]  →  "
        "dividing = [count for count in range(1, batch + 2) if batch % count == 0]": (
            "no number above the batch divides it"
        ),
        "fitting = [count for count in dividing if min(stages, count) * batch / count <= fits]  →  "
        "fitting = [count for count in dividing if min(stages, count) * batch // count <= fits]": WHOLE,
        "fitting = [count for count in dividing if min(stages, count) * batch / count <= fits]  →  "
        "fitting = [count for count in dividing if min(count, stages) * batch / count <= fits]": ORDER,
        "return (count + stages - 1) * (fixed + batch / count * each)  →  "
        "return (count + stages - 1) * (fixed + batch // count * each)": WHOLE,
    },
    ("14", "diagnose"): {
        **{
            f"if len(log[0][0]) == images:  →  if len(log[{rank}][{epoch}]) == images:": (
                "without a sampler every rank sees all images in every epoch"
            )
            for rank, epoch in ((0, 1), (0, -1), (1, 0), (-1, 0))
        },
        **{
            "seen = [image for epochs in log for image in epochs[0]]  →  "
            f"seen = [image for epochs in log for image in epochs[{epoch}]]": "the shares overlap in every epoch"
            for epoch in (1, -1)
        },
        **{
            f"if first == second == third:  →  if {orders}:": "the third order is that of both or of none"
            for orders in ("second == second == third", "first == third == third")
        },
        **{
            "return 'no shuffling' if first == sorted(first) else 'no set_epoch'  →  "
            f"return 'no shuffling' if {orders} else 'no set_epoch'": "all three orders are the same here"
            for orders in ("second == sorted(first)", "first == sorted(second)")
        },
    },
    ("12", "two_layers"): {
        "hidden = np.maximum(inputs @ columns + first_bias, 0)  →  "
        "hidden = np.maximum(0, inputs @ columns + first_bias)": ORDER,
    },
    ("13", "diagnose"): {
        "illness = worker = step = None  →  pass": OVERWRITTEN,
        "if signals and before.index(signals[0]) < before.index(exits[0]):  →  "
        "if signals and before.index(signals[0]) <= before.index(exits[0]):": "no event is a signal and an exit",
        "if event['computing'] < 2 * normal:  →  if event['computing'] <= 2 * normal:": (
            "no worker computes exactly twice as long as the others"
        ),
        "return {'illness': 'ranks come and go', 'worker': exits[0]['worker'], 'step': last_step}  →  "
        "return {'illness': 'ranks come and go', 'worker': exits[-1]['worker'], 'step': last_step}": (
            "the elastic job lost one rank; the same change where a worker is killed is rejected"
        ),
    },
    ("13", "cure"): {
        "late = [event for event in log if event['event'] == 'step' and event['step'] >= step]  →  "
        "late = [event for event in log if event['event'] == 'step' and event['step'] > step]": TOLERANCE,
        "return 1 / slow / (1 / slow + (workers - 1) / normal)  →  "
        "return 1 / slow / (1 // slow + (workers - 1) / normal)": TOLERANCE,
        "return 1 / slow / (1 / slow + (workers - 1) / normal)  →  "
        "return 1 / slow / (1 / slow + (workers - 1) // normal)": TOLERANCE,
        "return images * workers / (workers - 1)  →  return images * workers // (workers - 1)": (
            "the text says that the number is whole"
        ),
    },
    ("13", "elapsed"): {
        "while coming[0] < now:  →  while coming[0] <= now:": TIE,
        "if coming[0] >= end:  →  if coming[0] > end:": TIE,
        "while coming[1] < now:  →  while coming[1] <= now:": TIE,
    },
    ("13", "compare"): {
        "means = best = None  →  pass": OVERWRITTEN,
    },
    ("15", "attempt"): {
        f"await lab.given.add_up(rank, 0)  →  await lab.given.add_up(rank, {number})": "nobody reads this sum"
        for number in (1, -1)
    },
    ("15", "read_table"): {
        "trusted = speedup = efficiency = pays = None  →  pass": OVERWRITTEN,
        "pays = sizes[0]  →  pays = speedup[0]": "the first size is one node, and its speed-up 1",
        "for place in range(1, len(sizes)):  →  for place in range(1, len(speedup)):": LENGTH,
        "together = [peer for peer in runs if peer['start'] < run['end'] and peer['end'] > run['start']]  →  "
        "together = [run for peer in runs if peer['start'] < run['end'] and peer['end'] > run['start']]": (
            "only their number counts"
        ),
    },
    ("15", "rent"): {
        "if done <= deadline and (best is None or cost < best['cost']):  →  "
        "if done <= deadline and (best is None or cost <= best['cost']):": "no two choices cost the same",
    },
    ("16", "profile"): {
        "overlap = min(event['end'], other['end']) - max(event['start'], other['start'])  →  "
        "overlap = min(other['end'], event['end']) - max(event['start'], other['start'])": ORDER,
        "overlap = min(event['end'], other['end']) - max(event['start'], other['start'])  →  "
        "overlap = min(event['end'], other['end']) - max(other['start'], event['start'])": ORDER,
        "seconds['all-reduce'] -= max(0, overlap)  →  seconds['all-reduce'] -= max(overlap, 0)": ORDER,
    },
    ("16", "train"): {
        "if options.folder and hvd.rank() == 0:  →  if hvd.rank() == 0:": "all runs of the capstone have a folder",
        "steps.append({'texts': int(count), 'loss': loss, 'seconds': time.perf_counter() - start})  →  "
        "steps.append({'texts': int(count), 'loss': loss, 'seconds': time.perf_counter() + start})": (
            "the check measures nothing; `real_ranks.py` shows the seconds"
        ),
    },
}
