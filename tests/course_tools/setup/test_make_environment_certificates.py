"""A network that inspects TLS: what the package index presents is signed by an authority that nobody here knows."""

import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from course_tools.setup import make_environment
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade

pytestmark = [
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl to make a certificate"),
]

SENTENCE = (
    "presents a certificate of an authority that is not known here; set SSL_CERT_FILE and PIP_CERT to the file with "
    "that authority's certificate, then run `make setup` again"
)

REQUEST = """
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = localhost
[extensions]
subjectAltName = DNS:localhost
basicConstraints = critical,CA:FALSE
"""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The address of a server with a certificate that it has signed itself."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    (tmp_path / "request.cnf").write_text(REQUEST)
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-config", str(tmp_path / "request.cnf")]
    request += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True, timeout=300)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with HTTPServer(("localhost", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}/simple"
        finally:
            with suppress(OSError):
                server.shutdown()
            thread.join()


@pytest.mark.parametrize("program", ["uv", "pip"])
def test_an_unknown_certificate_authority_is_named(
    program: str, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "UV_SYSTEM_CERTS", "UV_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "localhost")
    environment = Environment(tmp_path)
    environment.folder.mkdir()
    options = ["--index-url", index, "--target", str(tmp_path / "packages"), "six"]
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python", sys.executable, "--no-config"]
    if program == "pip":
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
        command = [sys.executable, "-m", "pip", "install", "--retries", "0", "--no-cache-dir"]
    with make_environment.guard() as guard, pytest.raises(EnvironmentNotMade, match=SENTENCE):
        make_environment.Installer(environment, guard)._run([*command, *options])
