"""A server that acts as the mirrors of a data set with their faults, and fixtures for it."""

import gzip
import hashlib
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from distlab.data import download

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
LABELS = (np.arange(12) % 10).astype(np.uint8)
ARRAYS = dict(zip(download.KEYS, (IMAGES, LABELS, IMAGES[:3], LABELS[:3]), strict=True))


def idx(array: np.ndarray) -> bytes:
    """An array in the IDX format, packed by gzip."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(header + array.tobytes(), mtime=0)


FILES = {f"{key}.gz": idx(array) for key, array in ARRAYS.items()}
ARCHIVES = tuple(download.Archive(file, hashlib.sha256(content).hexdigest()) for file, content in FILES.items())


class Mirror(BaseHTTPRequestHandler):
    """Answers a request for /WAY/FILE in one of the ways below; the server keeps the list of requests."""

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        _, way, file = self.path.split("/")
        try:
            getattr(self, way)(FILES[file])
        except OSError:
            self.close_connection = True  # the client went away

    def start(self, length: int | None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def delivers(self, content: bytes) -> None:
        self.start(len(content))
        self.wfile.write(content)

    def delivers_without_length(self, content: bytes) -> None:
        self.start(None)
        self.wfile.write(content)

    def not_found(self, content: bytes) -> None:
        self.send_error(404)

    def closes_half_way(self, content: bytes) -> None:
        self.start(len(content))
        self.wfile.write(content[: len(content) // 2])

    def closes_at_once(self, content: bytes) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)

    def never_answers(self, content: bytes) -> None:
        self.server.closing.wait()

    def trickles(self, content: bytes) -> None:
        """A byte now and then, so that the mirror is never silent for long."""
        self.start(2**20)
        while not self.server.closing.wait(0.02):
            self.wfile.write(b"x")

    def changes_a_byte(self, content: bytes) -> None:
        self.delivers(content[:-1] + bytes([content[-1] ^ 1]))

    def sends_a_web_page(self, content: bytes) -> None:
        self.delivers(b"<html>Please log in</html>")

    def redirects_nowhere(self, content: bytes) -> None:
        self.send_response(302)
        self.send_header("Location", "http://[broken/")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class MirrorServer(ThreadingHTTPServer):
    """Mirrors on a free port, one for each way of answering; `arrays` are what their archives hold."""

    daemon_threads = True
    block_on_close = False
    arrays = ARRAYS
    archives = ARCHIVES

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Mirror)
        self.closing = threading.Event()
        self.requests: list[str] = []

    def mirror(self, way: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{way}/"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MirrorServer]:
    """Mirrors of a small data set that is called mnist while the test runs."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setitem(download.ARCHIVES, "mnist", ARCHIVES)
    with MirrorServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port of this machine where nobody listens, and nobody else can meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
