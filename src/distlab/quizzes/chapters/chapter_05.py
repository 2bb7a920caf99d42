"""Save and load: what each format keeps, who restores what, and whether a resumed run is the same run."""

from distlab.model_parallel import sharded_optimizers
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure

STATE = {"plain SGD": 0, "SGD with momentum": 4, "Adam": 8}  # bytes per float32 parameter


def size_of_a_checkpoint(numbers: Numbers) -> Item:
    """How large is a checkpoint?"""
    gigabytes = numbers.pick("gigabytes", (0.5, 1, 2, 4))
    replicas = numbers.pick("replicas", (4, 8))
    optimizer = numbers.pick("optimizer", tuple(STATE))
    sizes = {
        name: float(
            sharded_optimizers.model_state_bytes(gigabytes / 4, 1, 0, sharded_optimizers.BytesPerParameter(4, 0, state))
        )
        for name, state in STATE.items()
    }
    note = "Adam keeps two more values per weight, momentum one, plain SGD none."
    wrong = (Wrong(size, f"As with {name}", note) for name, size in sizes.items() if name != optimizer)
    return one_number_of(
        f"A model with {figure(gigabytes)} GB of float32 weights trains with {optimizer} on {replicas} replicas of one "
        "machine. "
        "How many GB has a checkpoint of model and optimizer?",
        sizes[optimizer],
        "GB",
        f"{note} The copies of a mirrored variable are equal, so one is written.",
        *wrong,
        Wrong(replicas * sizes[optimizer], "One copy per replica", "Copies are equal; one is enough."),
    )


def format_for_a_purpose(numbers: Numbers) -> Item:
    """Which call fits the purpose?"""
    calls = {
        "be served by a program that has no Keras": "`model.export(path)`",
        "be shared with Keras programs, structure included": '`model.save("model.keras")`',
        "resume in a custom loop after a stop": "`tf.train.CheckpointManager(…).save()`",
        "resume in `fit` after a crash": "the callback `BackupAndRestore`",
    }
    purpose = numbers.pick("purpose", tuple(calls))
    wrong = (Wrong(call, f"Made to {aim}", "It keeps something else.") for aim, call in calls.items() if aim != purpose)
    return one_of(
        f"A trained model shall {purpose}. What do you write it with?",
        calls[purpose],
        "A format is a choice: no format keeps everything, and each is made for a purpose.",
        *wrong,
    )


def step_after_a_loss_of_state(numbers: Numbers) -> Item:
    """How long is Adam's first step after its state was lost?"""
    rate = numbers.pick("rate", (0.001, 0.002, 0.005, 0.01))
    gradient = numbers.pick("gradient", (0.02, 0.05, 4.0, 20.0))
    mean, square = (1 - 0.9) * gradient, (1 - 0.999) * gradient**2
    step = rate * (mean / (1 - 0.9)) / ((square / (1 - 0.999)) ** 0.5 + 1e-7)
    return number(
        f"A program restores the weights, but not Adam's averages. The rate is {rate}, β₁ is 0.9, β₂ is 0.999, and a "
        "weight's gradient "
        f"is {figure(gradient)}. By how much does the first step change the weight?",
        step,
        "",
        "With empty averages the corrections make the quotient 1: each weight moves by about the rate.",
        Wrong(rate * gradient, "Plain SGD", "Adam divides by the gradient's own size."),
        Wrong(rate * mean, "Without the corrections", "m and v are divided by 1 − βᵗ, here 0.1 and 0.001."),
        Wrong(rate * 0.1 / 0.001**0.5, "One correction", "Both averages are corrected, and the factors cancel."),
    )


def jump_of_the_loss(numbers: Numbers) -> Item:
    """Why does the loss jump after a restart?"""
    optimizer = numbers.pick("optimizer", ("Adam", "plain SGD"))
    before, after = numbers.pick("losses", ((0.21, 0.64), (0.35, 0.92), (0.12, 0.4)))
    adam = "Adam's averages were lost"
    order = "It is no loss of optimizer state: look at the data and the code"
    right, wrong = (adam, order) if optimizer == "Adam" else (order, adam)
    return one_of(
        f"A program saves with `save_weights`, builds a new model, loads, and goes on with {optimizer}. The loss jumps "
        f"from {before} to "
        f"{after}. The weights are equal before and after. What is the likely reason?",
        right,
        "The plain loading call drops the optimizer's state. Plain SGD has none.",
        Wrong(wrong, "The optimizer's state", "Ask what this optimizer remembers."),
        Wrong(
            "The file is damaged", "A bad file", "A damaged file usually raises an error, and the weights are equal."
        ),
        Wrong("The number of replicas changed", "Replicas", "At the same global batch size that changes nothing."),
    )


def first_epoch(numbers: Numbers) -> Item:
    """With which epoch does fit begin?"""
    done = numbers.pick("done", (2, 3, 5))
    epochs = numbers.pick("epochs", (8, 10))
    way = numbers.pick("way", ("the callback `BackupAndRestore`", "`load_model` on a `.keras` file"))
    begins = done if "Backup" in way else 0
    return one_number_of(
        f"A run was killed when {done} epochs were done. The program starts again with {way} and calls "
        f"`fit(epochs={epochs})`, without "
        "`initial_epoch`. How many epochs does `fit` run now?",
        epochs - begins,
        "epochs",
        "Only `BackupAndRestore` keeps the number of the epoch; after other formats `fit` begins with epoch 0.",
        Wrong(epochs - (done - begins), "The other way to load", "Ask whether the file holds the epoch's number."),
        Wrong(epochs + done, "Added up", "`epochs` is the number of the last epoch, not how many more."),
        Wrong(done, "Those that were done", "They are not what remains."),
        exact=True,
    )


def order_after_a_restart(numbers: Numbers) -> Item:
    """Which order has the data after a restart?"""
    done = numbers.pick("done", (2, 3, 4, 6))
    way = numbers.pick("way", ("`shuffle(n, seed=7)` once for all epochs", "`shuffle(n, seed=epoch)` for each epoch"))
    right = 0 if "seed=7" in way else done
    return one_number_of(
        f"A pipeline uses {way}. After {done} epochs, 0 to {done - 1}, the program is started again and continues with "
        f"epoch {done}. The "
        "order of which epoch of an undisturbed run does it see first?",
        right,
        "",
        "A restart makes a new dataset object, whose generator begins at the seed, unless the order is a function of "
        "the epoch.",
        Wrong(done - right, "The other pipeline", "Ask what the order depends on: an object, or the epoch's number."),
        Wrong(done - 1, "The last one again", "Nothing stores the order of the last epoch."),
        Wrong(done + 1, "One epoch is skipped", "The new program continues with the epoch that is due."),
        exact=True,
    )


def repeated_after_a_kill(numbers: Numbers) -> Item:
    """How many steps are repeated after a kill?"""
    per_epoch = numbers.pick("per_epoch", (40, 50, 120))
    killed = numbers.pick("killed", (95, 170, 430))
    return number(
        f"A program saves model, optimizer and the number of finished epochs after each epoch of {per_epoch} steps. It "
        "is killed after "
        f"{killed} steps in all, and started again. How many steps does it do a second time?",
        killed % per_epoch,
        "steps",
        f"It resumes after {killed // per_epoch} whole epochs.",
        Wrong(killed, "From the start", "The newest checkpoint holds the finished epochs."),
        Wrong(per_epoch, "A whole epoch", "Only the steps of the unfinished epoch are repeated."),
        Wrong(per_epoch - killed % per_epoch, "Up to the next save", "What was not done yet is not repeated."),
        exact=True,
    )


def another_strategy(numbers: Numbers) -> Item:
    """What changes when another strategy loads a model?"""
    saved = numbers.pick("saved", (2, 4))
    loading = numbers.pick("loading", (1, 3, 8))
    return several_of(
        f"{saved} replicas save a model in the Keras format. A program with {loading} "
        f"{'replica' if loading == 1 else 'replicas'} loads it "
        "in its strategy's scope. What is true?",
        {
            "The predictions are equal up to rounding.": "A format stores a mirrored variable's value, not its copies.",
            f"Each weight then has {loading} {'copy' if loading == 1 else 'copies'}.": "The loading scope makes them.",
        },
        Wrong(
            f"Each weight then has {saved} copies.", "Copies in the file", "The number of replicas is not in the file."
        ),
        Wrong(
            f"Only {saved} replicas can resume the training.",
            "Tied to the replicas",
            "No trace of the strategy is left.",
        ),
        Wrong(
            "The scope in which the model was saved decides.",
            "The saving scope",
            "Variables are created when it is loaded.",
        ),
    )


def own_layer(numbers: Numbers) -> Item:
    """Which formats need a layer's class?"""
    name = numbers.pick("name", ("Scale", "Shift", "Gate", "Mixture"))
    return several_of(
        f"A model has a custom layer, `{name}`. The loading program does not contain its class. Which of these can it "
        "use to predict?",
        {
            "A Keras SavedModel": "It stores the traced graph of each layer.",
            "What `model.export` wrote": "It is a graph, and needs no Keras.",
        },
        Wrong("A `.keras` file", "The structure is enough", "It stores the name of the class and no code."),
        Wrong("A `.weights.h5` file", "Weights are enough", "The program must build the model, with the class."),
        Wrong("A `tf.train.Checkpoint`", "Variables are enough", "The program must build the model, with the class."),
    )


def resumed_and_straight(numbers: Numbers) -> Item:
    """Is the resumed run equal to the straight one?"""
    dropout = numbers.pick("dropout", (0.0, 0.1, 0.2, 0.5))
    epochs = numbers.pick("epochs", (2, 4))
    equal, other_masks = "Yes, up to rounding", "No: dropout draws the numbers of epoch 0 again"
    right, wrong = (other_masks, equal) if dropout else (equal, other_masks)
    return one_of(
        f"A run of {2 * epochs} epochs stops after {epochs} and resumes from a checkpoint of model and optimizer. The "
        "order of the data is "
        f"a function of the epoch, and the network has {'a dropout of ' + str(dropout) if dropout else 'no dropout'}. "
        "Does it end as an "
        "uninterrupted run does?",
        right,
        "The checkpoint has every variable of model and optimizer, but not the random state of Keras's dropout.",
        Wrong(wrong, "Random state", "Ask what in this network draws random numbers."),
        Wrong("No: the optimizer's state is lost", "Optimizer", "A checkpoint of model and optimizer holds it."),
        Wrong("No: the data come in another order", "Data order", "It is a function of the epoch's number here."),
    )


TEMPLATES = (
    format_for_a_purpose,
    size_of_a_checkpoint,
    another_strategy,
    own_layer,
    repeated_after_a_kill,
    step_after_a_loss_of_state,
    jump_of_the_loss,
    order_after_a_restart,
    first_epoch,
    resumed_and_straight,
)
