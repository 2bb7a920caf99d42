"""A worker that waits for the others can be ended."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Make a strategy in this block: then Ctrl-C ends the process also while TensorFlow waits for other workers.

    TensorFlow waits in C++, where Python cannot raise KeyboardInterrupt, so the system has to end the process. SIGTERM
    is different: TensorFlow takes it for the notice of a preemption, and goes on. After the block it does again what
    it did before; while TensorFlow waits, `kill -INT` ends the process, and `kill` does not.
    """
    if threading.current_thread() is not threading.main_thread():  # as in Ray's workers, which end in another way
        yield
        return
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # not where it is ignored, as in the background of a shell script
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
