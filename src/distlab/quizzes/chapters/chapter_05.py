"""Save and load: what each format keeps, who restores what, and whether a resumed run is the same run."""

from distlab.quizzes.item import Item, amount, figure, pick

CALLS = {
    "be served by a program that has no Keras": "`model.export(path)`",
    "be shared with programs of the same Keras, structure included": '`model.save("model.keras")`',
    "resume in a custom loop after a stop": "`tf.train.CheckpointManager(…).save()`",
    "resume in `fit` after a crash": "the callback `BackupAndRestore`",
}
STATE = {"plain SGD of Keras 3": 0, "SGD with momentum": 4, "Adam": 8}  # bytes per float32 parameter


def format_for_a_purpose(item: Item, purpose: str = pick(*CALLS)) -> None:
    item.choose(f"A trained model must {purpose}. What do you write it with?")
    item.right(CALLS[purpose]).why("A format is a choice: no format keeps everything, and each is made for a purpose.")
    for aim, call in CALLS.items():
        if aim != purpose:
            item.wrong(call, f"Made to {aim}").why("It keeps something else.")


def size_of_a_checkpoint(
    item: Item, gigabytes: float = pick(0.5, 1, 2, 4), replicas: int = pick(4, 8), optimizer: str = pick(*STATE)
) -> None:
    sizes = {name: gigabytes / 4 * (4 + state) for name, state in STATE.items()}
    note = "Adam keeps two more values per weight, momentum one, plain SGD of Keras 3 none."
    item.choose(f"""A model with {figure(gigabytes)} GB of float32 weights trains with {optimizer} on {replicas}
        replicas of one machine. How many GB does a checkpoint of model and optimizer take?""")
    item.right(sizes[optimizer], "GB").why(f"{note} The copies of a mirrored variable are equal, so one is written.")
    for name, size in sizes.items():
        if name != optimizer:
            item.wrong(size, f"As with {name}").why(note)
    item.wrong(replicas * sizes[optimizer], "One copy per replica").why("Copies are equal; one is enough.")


def another_strategy(item: Item, saved: int = pick(2, 4), loading: int = pick(1, 3, 8)) -> None:
    item.choose(f"""{saved} replicas save a model in the Keras format. A program with {amount(loading, "replicas")}
        loads it in its strategy's scope. What is true?""")
    item.right("The predictions are equal up to rounding.").why("""A format stores a mirrored variable's value, not its
        copies.""")
    item.right(f"Each weight then has {amount(loading, 'copies')}.").why("The loading scope makes them.")
    item.wrong(f"Each weight then has {saved} copies.", "Copies in the file").why("""The number of replicas is not in
        the file.""")
    item.wrong(f"Only {saved} replicas can resume the training.", "Tied to the replicas").why("""No trace of the
        strategy is left.""")
    item.wrong("The scope in which the model was saved decides.", "The saving scope").why("""Variables are created when
        it is loaded.""")


def own_layer(item: Item, name: str = pick("Scale", "Shift", "Gate", "Mixture")) -> None:
    item.choose(f"""A model has a custom layer, `{name}`. The loading program does not contain its class. Which of these
        can it use to predict?""")
    item.right("A Keras SavedModel").why("It stores the traced graph of each layer.")
    item.right("What `model.export` wrote").why("It is a graph, and needs no Keras.")
    item.wrong("A `.keras` file", "The structure is enough").why("It stores the name of the class and no code.")
    item.wrong("A `.weights.h5` file", "Weights are enough").why("The program must build the model, with the class.")
    item.wrong("A `tf.train.Checkpoint`", "Variables are enough").why("""The program must build the model, with the
        class.""")


def repeated_after_a_kill(item: Item, per_epoch: int = pick(40, 50, 120), killed: int = pick(95, 170, 430)) -> None:
    item.enter(f"""A program saves model, optimizer and the number of finished epochs after each epoch of {per_epoch}
        steps. It is killed after {killed} steps in all, and started again. How many steps does it do a second time?""")
    item.right(killed % per_epoch, "steps").why(f"It resumes after {killed // per_epoch} whole epochs.")
    item.wrong(killed, "From the start").why("The newest checkpoint holds the finished epochs.")
    item.wrong(per_epoch, "A whole epoch").why("Only the steps of the unfinished epoch are repeated.")
    item.wrong(per_epoch - killed % per_epoch, "Up to the next save").why("What was not done yet is not repeated.")


def step_after_a_loss_of_state(
    item: Item, rate: float = pick(0.001, 0.002, 0.005, 0.01), gradient: float = pick(0.02, 0.05, 4.0, 20.0)
) -> None:
    mean, square = (1 - 0.9) * gradient, (1 - 0.999) * gradient**2
    step = rate * (mean / (1 - 0.9)) / ((square / (1 - 0.999)) ** 0.5 + 1e-7)
    item.enter(f"""A program restores the weights, but not Adam's averages. The rate is {rate}, β₁ is 0.9, β₂ is 0.999,
        and a weight's gradient is {figure(gradient)}. By how much does the first step change the weight?""")
    item.right(step).why("""With empty averages the corrections make the quotient 1: each weight moves by about the
        rate.""")
    item.wrong(rate * gradient, "Plain SGD").why("Adam divides by the gradient's own size.")
    item.wrong(rate * mean, "Not divided").why("Adam also divides by the square root of the second average.")
    item.wrong(rate * 0.1 / 0.001**0.5, "Without the corrections").why("""m and v are divided by 1 − βᵗ, here 0.1 and
        0.001.""")


def jump_of_the_loss(
    item: Item,
    optimizer: str = pick("Adam", "plain SGD"),
    losses: tuple[float, float] = pick((0.21, 0.64), (0.35, 0.92), (0.12, 0.4)),
) -> None:
    adam = "Adam's averages were lost"
    order = "Something in the data or the code changed; no optimizer state was lost"
    right, wrong = (adam, order) if optimizer == "Adam" else (order, adam)
    item.choose(f"""A program saves with `save_weights`, builds a new model, loads, and goes on with {optimizer}. The
        loss jumps from {losses[0]} to {losses[1]}. The weights are equal before and after. What is the likely
        reason?""")
    item.right(right).why("The plain loading call drops the optimizer's state. Plain SGD uses none.")
    item.wrong(wrong, "The optimizer's state").why("Ask what this optimizer remembers.")
    item.wrong("The file is damaged", "A bad file").why("""A damaged file usually raises an error, and the weights are
        equal.""")
    item.wrong("The number of replicas changed", "Replicas").why("At the same global batch size that changes nothing.")


def order_after_a_restart(
    item: Item,
    done: int = pick(2, 3, 4, 6),
    way: str = pick("`shuffle(n, seed=7)` once for all epochs", "`shuffle(n, seed=epoch)` for each epoch"),
) -> None:
    right = 0 if "seed=7" in way else done
    item.choose(f"""A pipeline uses {way}. After {done} epochs, 0 to {done - 1}, the program is started again and
        continues with epoch {done}. The order of which epoch of an undisturbed run does it see first?""")
    item.right(right).why("""A restart makes a new dataset object, whose generator begins at the seed, unless the order
        is a function of the epoch.""")
    item.wrong(done - right, "The other pipeline").why("""Ask what the order depends on: an object, or the epoch's
        number.""")
    item.wrong(done - 1, "The last one again").why("Nothing stores the order of the last epoch.")
    item.wrong(done + 1, "One epoch is skipped").why("The new program continues with the epoch that is due.")


def first_epoch(
    item: Item,
    done: int = pick(2, 3, 5),
    epochs: int = pick(8, 10),
    way: str = pick("the callback `BackupAndRestore`", "`load_model` on a `.keras` file"),
) -> None:
    begins = done if "Backup" in way else 0
    item.choose(f"""A run was killed when {done} epochs were done. The program starts again with {way} and calls
        `fit(epochs={epochs})`, without `initial_epoch`. How many epochs does `fit` run now?""")
    item.right(epochs - begins, "epochs").why("""Of the two, only `BackupAndRestore` keeps the number of the epoch;
        after `load_model`, `fit` begins with epoch 0.""")
    item.wrong(epochs - (done - begins), "The other way to load").why("Ask whether the file holds the epoch's number.")
    item.wrong(epochs + done, "Added up").why("`epochs` is the number of the last epoch, not how many more.")
    item.wrong(done, "Those that were done").why("They are not what remains.")


def resumed_and_straight(item: Item, dropout: float = pick(0.0, 0.1, 0.2, 0.5), epochs: int = pick(2, 4)) -> None:
    equal, other_masks = "Yes, up to rounding", "No: dropout draws the numbers of epoch 0 again"
    right, wrong = (other_masks, equal) if dropout else (equal, other_masks)
    item.choose(f"""A run of {2 * epochs} epochs stops after {epochs} and resumes from a checkpoint of model and
        optimizer. The order of the data is a function of the epoch, and the network has
        {"a dropout of " + str(dropout) if dropout else "no dropout"}. Does it end as an uninterrupted run does?""")
    item.right(right).why("""The checkpoint has every variable of model and optimizer, but not the random state of
        Keras's dropout.""")
    item.wrong(wrong, "Random state").why("Ask what in this network draws random numbers.")
    item.wrong("No: the optimizer's state is lost", "Optimizer").why("A checkpoint of model and optimizer holds it.")
    item.wrong("No: the data come in another order", "Data order").why("It is a function of the epoch's number here.")
