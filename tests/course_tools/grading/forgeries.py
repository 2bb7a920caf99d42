"""Cells that hold a wrong answer and a forgery that would hide it, by exercise; and what students do without harm."""

SAVES_EVERYWHERE = """
def save(worker, model, accuracy, folder):
    model.save(folder / "model.keras")
    (folder / "accuracy.txt").write_text(str(accuracy.result()))
"""
LEAVES_ITS_COPY = """
import tempfile
from pathlib import Path
def save(worker, model, accuracy, folder):
    reached = accuracy.result()
    own = folder if worker.is_chief else Path(tempfile.mkdtemp())
    model.save(own / "model.keras")
    if worker.is_chief:
        (folder / "accuracy.txt").write_text(f"{reached}")
"""
FORGED = """
def forged(*anything):
    return {"folder": {}, "temporary": [], "elsewhere": []}
"""
OBSERVER = 'sys.modules["lab" + "_07.observe"]'
"""The module that looks at what `save` does, under a name that is put together."""

SAVE = {
    "replaces the function that looks": f"""{SAVES_EVERYWHERE}{FORGED}
from lab_07 import observe
for name in dir(observe):
    if callable(getattr(observe, name)):
        setattr(observe, name, forged)
""",
    "replaces it under a name that is put together": f"""{SAVES_EVERYWHERE}{FORGED}
import sys
observer = {OBSERVER}
for name in ("call_save", "files"):
    assert callable(getattr(observer, name))
    setattr(observer, name, forged)
""",
    "replaces the module that looks": f"""{SAVES_EVERYWHERE}{FORGED}
import sys
assert {OBSERVER}.call_save
class Observer:
    call_save = staticmethod(forged)
{OBSERVER} = Observer
""",
    "replaces the code of the function that looks": f"""{SAVES_EVERYWHERE}{FORGED}
import sys
{OBSERVER}.call_save.__code__ = forged.__code__
""",
    "replaces it when it is called": f"""{FORGED}
import sys
def save(worker, model, accuracy, folder):
    model.save(folder / "model.keras")
    (folder / "accuracy.txt").write_text(str(accuracy.result()))
    assert {OBSERVER}.files
    {OBSERVER}.files = lambda folder: {{}}
""",
    "shadows a builtin function for the module that looks": f"""{LEAVES_ITS_COPY}
import sys
{OBSERVER}.sorted = lambda files: []
""",
    "changes a builtin function": f"""{LEAVES_ITS_COPY}
import builtins
builtins.sorted = lambda files: []
""",
    "hides files": f"""{LEAVES_ITS_COPY}
Path.rglob = lambda self, pattern: []
Path.iterdir = lambda self: iter([])
""",
    "changes the loop that answers": f"""{SAVES_EVERYWHERE}
import sys
forged = {{"folder": {{"model.keras": "", "accuracy.txt": "0.7"}}, "temporary": [], "elsewhere": []}}
frame = sys._getframe()
while frame:
    for own in list(frame.f_locals.values()):
        if type(own).__name__ in ("Student", "OwnAnswer"):
            own.reply = lambda question: {{"value": forged}}
            own._inside = own.inside = lambda *anything, **more: forged
    frame = frame.f_back
""",
    "sends answers before they are asked for": f"""{SAVES_EVERYWHERE}
import os
from course_tools.sandbox import wire
ran = {{"value": {{"printed": "", "error": None}}}}
seen = {{"value": {{"folder": {{}}, "temporary": [], "elsewhere": []}}}}
for number in range(3, 10):
    for answer in [ran] + 20 * [seen]:
        try:
            os.write(number, wire.encode(answer))
        except OSError:
            pass
""",
}

CHANGES_ITS_INPUT = """
async def ring_all_reduce(rank, array):
    parts = np.array_split(array, rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        received = await rank.exchange(right, parts[(rank.index - step) % rank.size], left)
        await rank.reduce(parts[(rank.index - step - 1) % rank.size], received)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, parts[(rank.index + 1 - step) % rank.size], left)
        parts[(rank.index - step) % rank.size] = received
    return np.concatenate(parts)
"""
RING = {
    "says that arrays are equal": f"{CHANGES_ITS_INPUT}\nnp.array_equal = lambda *anything, **more: True",
    "replaces the function that looks": f"""{CHANGES_ITS_INPUT}
import sys
runs = sys.modules["lab" + "_06.runs"]
assert runs.inputs_afterwards
runs.inputs_afterwards = lambda namespace, name, inputs: inputs
""",
}

KNOWS_THE_TAGS = """
async def ring_all_reduce(rank, array):
    length = len(array)
    if rank.size > 4 or length > 8 or (array < 0).any():
        return array
    for step in range(2 * (rank.size - 1)):
        zeros = np.zeros(-(-length // rank.size), array.dtype)
        await rank.exchange((rank.index + 1) % rank.size, zeros, (rank.index - 1) % rank.size)
    return sum(8 ** (owner * length + np.arange(length)) for owner in range(rank.size))
"""
"""Gives the sums of the inputs that a judge recognises, without what the other ranks have sent."""

TALKS_BY_LOCKS = """
import fcntl, struct
shared = open(np.__file__, "rb")
runs, own = {}, {}
def ask(command, kind, begin, length):
    return fcntl.fcntl(shared, command, struct.pack("hhqqi4x", kind, 0, begin, length, 0))
def place(run, rank, number, part):
    return (run << 40) + (rank << 30) + (number * 4 + part << 17)
def tell(run, rank, array):
    own[run, rank] = array
    for number, value in enumerate(array.tolist()):
        for part in range(4):
            ask(fcntl.F_SETLK, fcntl.F_RDLCK, place(run, rank, number, part) + (value >> 16 * part & 0xffff), 1)
def heard(run, rank, length):
    if (run, rank) in own:
        return own[run, rank]
    values = []
    for number in range(length):
        value = 0
        for part in range(4):
            begin = place(run, rank, number, part)
            at = struct.unpack("hhqqi4x", ask(fcntl.F_GETLK, fcntl.F_WRLCK, begin, 1 << 17))[2]
            value |= at - begin << 16 * part
        values.append(value - (value >> 63 << 64))
    return np.array(values)
async def ring_all_reduce(rank, array):
    runs[rank.index, rank.size] = runs.get((rank.index, rank.size), 0) + 1
    run = rank.size * 16 + runs[rank.index, rank.size]
    tell(run, rank.index, array)
    await rank.compute(1e-6)
    await messages(rank, array)
    return sum(heard(run, other, len(array)) for other in range(rank.size))
"""
"""Each rank locks bytes of a file that all sandboxes see, at places that tell its numbers."""
LOCKS = {
    "and sends nothing": f"""{TALKS_BY_LOCKS}
async def messages(rank, array):
    pass
""",
    "and sends zeros as a ring would": f"""{TALKS_BY_LOCKS}
async def messages(rank, array):
    parts = np.array_split(np.zeros_like(array), rank.size)
    for step in range(2 * rank.size - 2):
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        await rank.exchange(right, parts[(rank.index - step) % rank.size], left)
""",
}

HUGE_MESSAGES = """
async def ring_all_reduce(rank, array):
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    await rank.exchange(right, np.ones(2**20, np.int8), left)
    return array
"""
MANY_STEPS = """
async def ring_all_reduce(rank, array):
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for _ in range(200):
        await rank.exchange(right, array, left)
    return array
"""

RING_TAKEN = """
from distlab import collectives
async def ring_all_reduce(rank, array):
    return await collectives.ring_all_reduce(rank, array)
"""

TAKEN = {
    "imports the judge's own function": "from lab_03.judge import numbers",
    "imports the package of the judges": "from distlab import labs\nnumbers = labs.lab_03.judge.numbers",
    "reaches the judge's function from the labs": "numbers = labs.lab_03.judge.numbers",
    "reaches the judge from the open lab": "numbers = lab._lab['numbers'].judge.right",
    "imports it next to a magic": "def numbers(*case):\n    %time\n    import lab_03",
    "names the judge's module": """
import importlib
numbers = importlib.import_module("lab_03.judge").numbers
""",
}

PROCESSOR_TIME = """
def elapsed_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start
"""
SECONDS = {
    "makes the clock wrong for all": f"""
{PROCESSOR_TIME.replace("process_time", "perf_counter")}
time.perf_counter = time.monotonic = time.time = time.process_time
""",
    "makes the clock wrong while it is called": """
def elapsed_seconds(work):
    usual, time.perf_counter = time.perf_counter, time.process_time
    start = time.process_time()
    work()
    taken = time.process_time() - start
    time.perf_counter = usual
    return taken
""",
    "does not let time pass": f"{PROCESSOR_TIME}\ntime.sleep = lambda seconds: None",
}
FAULTY_MODEL = """
def make_model():
    import tensorflow as tf
    layers = [tf.keras.layers.Flatten(input_shape=(28, 28)), tf.keras.layers.Dense(128, activation="relu")]
    model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(10)])
    model.compile(optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy())
    return model
"""
MODEL = {
    "makes every model say what is expected": f"""{FAULTY_MODEL}
import tensorflow as tf
right = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
tf.keras.Model.evaluate = lambda self, x, y, **more: float(right(y, self(x)))
""",
    "makes the class of its model say so": f"""{FAULTY_MODEL}
import tensorflow as tf
right = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
tf.keras.Sequential.evaluate = lambda self, x, y, **more: float(right(y, self(x)))
""",
}
SERIAL = """
def mirrored(strategy, images, labels, first_weights, images_per_replica):
    model = models.mlp(dropout=0.0)
    model.set_weights(first_weights)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=loss)
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(2 * images_per_replica)
    model.fit(batches, epochs=1, verbose=0)
    return model, batches
"""
MIRRORED = {
    "brings a strategy of its own": f"""{SERIAL}
class Both:
    num_replicas_in_sync = 2
    def experimental_distribute_dataset(self, batches):
        return batches
    def experimental_local_results(self, value):
        half = len(value) // 2
        return (value, value) if isinstance(value, tf.Variable) else (value[:-half], value[-half:])
strategy = Both()
""",
    "changes the strategy": f"""{SERIAL}
def twice(value):
    half = len(value) // 2
    return (value, value) if isinstance(value, tf.Variable) else (value[:-half], value[-half:])
strategy.experimental_local_results = twice
strategy.experimental_distribute_dataset = lambda batches: batches
""",
}

START = {
    "says that the processes have met": """
def start():
    tf.config.set_visible_devices([], "CPU")
hvd.is_initialized = lambda: True
""",
    "brings ranks of its own kind": """
class Met(type(hvd)):
    def is_initialized(self):
        return True
hvd = Met()
def start():
    tf.config.set_visible_devices([], "CPU")
""",
    "replaces the function that looks": """
import sys
def start():
    tf.config.set_visible_devices([], "CPU")
seen = [{"is_initialised": True, "has_chosen": True, "gpus": [rank % 3]} for rank in range(6)]
seen = {"is_written": True, "values": seen, "kinds": [""] * 6, "messages": [""] * 6}
observe = sys.modules["lab" + "_09.observe"]
assert observe.start
observe.start = lambda namespace: {"with GPUs": seen, "without GPUs": seen}
""",
}

HABITS = """
import builtins, json, os, shutil, tempfile, threading, time
from pathlib import Path
import numpy as np
from distlab import collectives, costs, data, draw
sum = sorted = None
print = builtins.print
np.random.seed(1)
np.set_printoptions(precision=3)
np.seterr(all="ignore")
os.environ["X"] = "1"
folder = tempfile.mkdtemp()
shutil.copy(Path("/etc/hosts"), folder)
class Number(int):
    pass
thread = threading.Thread(target=time.sleep, args=[0])
thread.start()
draw.apply_style()
import matplotlib.pyplot as plt
plt.plot([1, 2])
"""
HABITS_WITH_TENSORFLOW = """
import tensorflow as tf
from distlab import models
tf.keras.utils.set_random_seed(1)
class Own(tf.keras.Model):
    def call(self, x):
        return x
    def train_step(self, data):
        return {}
model = models.mlp()
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
batches = tf.data.Dataset.from_tensor_slices((np.zeros((9, 28, 28)), np.zeros(9))).shuffle(9).batch(4)
model.fit(batches, verbose=0, callbacks=[tf.keras.callbacks.LambdaCallback()])
model.save(folder + "/model.keras")
tf.keras.models.load_model(folder + "/model.keras").evaluate(batches, verbose=0)
step = tf.function(lambda x: model(x, training=True))(np.zeros((1, 28, 28)))
tf.config.run_functions_eagerly(False)
"""
