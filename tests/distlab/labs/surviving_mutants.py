"""The mutants of solutions that the checks accept, by lab and exercise: the changed statement, and why it is right."""

LENGTH = "both have the same length"
ANY_FACTOR = "if all factors are equal, any of them is"
SAME_VARIABLE = "the checkpoint's step is the variable of the training"
WHOLE = "a count that divides the batch leaves a whole number of examples, so nothing is cut off"
DIFFERENCE = "a staleness is a difference of two versions"
OVERLAP = "the shares overlap in every epoch"
SAME_ORDER = "the third order is that of both or of none"
TIE = "the text leaves open what a fault does at the very moment at which something ends"
TOLERANCE = "the rounding is less than the 3 % that the text allows"

COPIES_EQUAL = "no two copies differ by exactly that"
RELATIVE_TOO = "np.allclose adds a relative tolerance, so no fault is that small"
CHECKED = "that all copies are equal was asked before"

SURVIVORS: dict[tuple[str, str], dict[str, str]] = {
    ("02", "repeats"): {
        "answer['order'] = np.array_equal(numbers_again, numbers)": "both are compared",
        "answer['augmentation'] = np.array_equal(by_number_again, by_number)": "both are compared",
    },
    ("02", "plan"): {
        f"divisors = [together for together in range(1, every {end}) if every % together == 0]": (
            "no number above `every` divides it, and it is taken where none of the others is enough"
        )
        for end in ("- 1", "+ 2", "+ 0")
    }
    | {
        "fitting = [together for together in divisors if 20 * python < python + together * graph]": (
            "no share is 5 % exactly, where the rounding of other formulas would decide"
        )
    },
    ("02", "train"): {
        f"model.fit(batches.prefetch(tf.data.AUTOTUNE), epochs=epochs, verbose={number})": "it only prints"
        for number in (1, -1)
    },
    ("03", "mirrored"): {
        f"model.compile(tf.keras.optimizers.SGD(rate {other}), loss)": "WarmUp sets the rate before every step"
        for other in ("// replicas", "+ replicas", "* steps_per_epoch", "* epochs")
    }
    | {f"steps_per_epoch = math.ceil(len(train[{place}]) / batch_size)": LENGTH for place in (1, -1)}
    | {
        "history = model.fit(tf.data.Dataset.from_tensor_slices(train).batch(batch_size), epochs=epochs, "
        "callbacks=[WarmUp(rate * replicas, steps_per_epoch)], validation_data=tf.data.Dataset."
        f"from_tensor_slices(validation).batch(batch_size), verbose={number})": "it only prints"
        for number in (1, -1)
    },
    ("03", "diagnose"): {
        "if np.ptp(run['after'], axis=0).max() >= 1e-05:": COPIES_EQUAL,
        "if np.ptp(run['after'], axis=0).max() > 2e-05:": RELATIVE_TOO,
        "if np.abs(run['after'][0] - run['serial']).max() > 2e-05:": RELATIVE_TOO,
        "if np.abs(run['after'][0] - run['serial']).max() >= 1e-05:": "no difference is exactly that large",
        "if np.abs(run['after'][1] - run['serial']).max() > 1e-05:": CHECKED,
        "if np.abs(run['after'][-1] - run['serial']).max() > 1e-05:": CHECKED,
    },
    ("05", "lacks"): {
        f"return 'step count' if np.allclose(factors, factors[{place}]) else 'averages'": ANY_FACTOR
        for place in (1, -1)
    },
    ("05", "run"): {
        "while int(checkpoint.step) < last_step:": SAME_VARIABLE,
        "training.train_step(training.numbers(int(checkpoint.step)))": SAME_VARIABLE,
        "if int(checkpoint.step) % every == 0 or int(training.step) == last_step:": SAME_VARIABLE,
        "if int(training.step) % every == 0 or int(checkpoint.step) == last_step:": SAME_VARIABLE,
    },
    ("05", "housekeeping"): {
        "older = [files['number'] for files in checkpoints if files['number'] <= whole[-1]]": (
            "the newest whole one is among those to keep"
        ),
    },
    ("06", "halving_doubling_all_reduce"): {
        "low, high = (0, len(array))": LENGTH,
        "if rank.index >= partner:": "no rank is its own partner",
        "if rank.index <= partner:": "either partner may keep the lower half",
    },
    ("08", "staleness"): {f"version, version_read, stale = ({first}, {{}}, [])": DIFFERENCE for first in (1, -1)},
    ("08", "choose"): {
        "without rates, choice = (dict.fromkeys(('synchronous', 'backup workers', 'asynchronous')), None)": (
            "each name gets another value in any case"
        ),
        "if times_dropped.max() <= steps // 2:": (
            "a whole number is not above a half exactly if it is not above its whole part"
        ),
    },
    ("08", "next_shares"): {"following = np.ones(len(seconds_per_image), int)": LENGTH},
    ("10", "noise_scale"): {
        "scale = variance / squared_gradient if squared_gradient >= 0 else float('inf')": (
            "NumPy's number divided by 0 is infinite too"
        ),
    },
    ("11", "amdahl"): {
        "columns = np.stack([np.ones(len(seconds)), 1 / ranks], axis=1)": LENGTH,
        "(serial, parallel), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(seconds)))": LENGTH,
    },
    ("11", "alpha_beta"): {
        "scale = columns.min(axis=0)": "any scale is divided out",
        "found, *_ = np.linalg.lstsq(columns / scale, np.ones(len(columns)))": LENGTH,
    },
    ("11", "predicted"): {
        "return serial + parallel / ranks + steps * (latency + nbytes // ranks * seconds_per_byte)": (
            "a part of a byte takes less than a thousandth of a latency"
        ),
    },
    ("12", "plan"): {
        "dividing = [count for count in range(1, batch + 2) if batch % count == 0]": (
            "no number above the batch divides it"
        ),
        "fitting = [count for count in dividing if min(stages, count) * batch // count <= fits]": WHOLE,
        "return (count + stages - 1) * (fixed + batch // count * each)": WHOLE,
    },
    ("13", "diagnose"): {
        "last_step = steps[-2]['step']": "all workers do the last step",
        "if signals and signals[0]['second'] <= exits[0]['second']:": "no two events are at one time",
        (
            "fast = [event['step'] for event in events(log, 'step', worker=worker) if event['computing'] <= 2 * normal]"
        ): "no worker computes exactly twice as long as the others",
        "return {'illness': 'ranks come and go', 'worker': exits[-1]['worker'], 'step': last_step}": (
            "the elastic job lost one rank; the same change where a worker is killed is rejected"
        ),
    },
    ("13", "cure"): {
        "late = [event for event in events(log, 'step') if event['step'] > step]": TOLERANCE,
        **{f"images = events(log, 'step')[{place}]['images']": "they are the same in all steps" for place in (1, -1)},
        "return 1 / slow / (1 // slow + (workers - 1) / normal)": TOLERANCE,
        "return 1 / slow / (1 / slow + (workers - 1) // normal)": TOLERANCE,
        "return images * workers // (workers - 1)": "the text says that the number is whole",
    },
    ("13", "elapsed"): {
        "while coming[0] <= now:": TIE,
        "if coming[0] > end:": TIE,
        "while coming[1] <= now:": TIE,
    },
    ("14", "diagnose"): {
        **{
            f"if len(log[{rank}][{epoch}]) == images:": "without a sampler every rank sees all images in every epoch"
            for rank, epoch in ((0, 1), (0, -1), (1, 0), (-1, 0))
        },
        **{f"seen = [image for epochs in log for image in epochs[{epoch}]]": OVERLAP for epoch in (1, -1)},
        **{f"if {orders}:": SAME_ORDER for orders in ("second == second == third", "first == third == third")},
        **{
            f"return 'no shuffling' if {orders} else 'no set_epoch'": "all three orders are the same here"
            for orders in ("second == sorted(first)", "first == sorted(second)")
        },
    },
    ("15", "attempt"): {f"await lab.given.add_up(rank, {number})": "nobody reads this sum" for number in (1, -1)},
    ("15", "read_table"): {
        "pays = speedup[0]": "the first size is one node, and its speed-up 1",
        "for place in range(1, len(speedup)):": LENGTH,
        "together = [run for peer in runs if peer['start'] < run['end'] and peer['end'] > run['start']]": (
            "only their number counts"
        ),
    },
    ("15", "rent"): {
        "if done <= deadline and (best is None or cost <= best['cost']):": "no two choices cost the same",
    },
    ("16", "train"): {
        "if hvd.rank() == 0:": "all runs of the capstone have a folder",
    },
}
