"""Why pip or uv could not install the packages, told in one sentence from what it has said."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from course_tools.setup.package_index import chosen_index
from course_tools.setup.virtual_environment import BYTES_NEEDED

PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
# How uv names a package whose file or whose page of the index it cannot fetch, and how pip does.
_PACKAGES = (r"Failed to download `([\w.-]+)", r"(?m)Failed to fetch: `?\S+/([\w.-]+)/`?$", r"requirement ([\w.-]+)==")


def cause(text: str, status: int, log: Path, variables: Mapping[str, str]) -> str:
    """Why a program that has said `text` ended with this status, and what to do; `variables` are those it ran with."""
    said = text.lower()
    if "no space left" in said or "quota exceeded" in said:
        place = f"the disk is full, that of .venv or that of uv's cache, {cache_of_uv()}"
        return f"{place}; free {BYTES_NEEDED / 1e9:.1f} GB and run `make setup` again."
    if "hash mismatch" in said or "do not match the hashes" in said:
        return f"a file is not the one that requirements.lock names, see {log}."
    if variables.get("UV_OFFLINE") and "offline" in said:
        return f"UV_OFFLINE is set, and a package is not in uv's cache; unset it (the log is {log})."
    if "unknownissuer" in said or "certificate_verify_failed" in said or "certificate verify failed" in said:
        return (
            "the network, or a proxy in it, presents a certificate of an authority that is not known here; set "
            "SSL_CERT_FILE and PIP_CERT to the file with that authority's certificate, then run `make setup` again "
            f"(for uv, UV_SYSTEM_CERTS=1 is enough where this system knows the authority; the log is {log})."
        )
    package = next((match[1] for match in (re.search(form, text) for form in _PACKAGES) if match), None)
    signs = ("dns error", "error sending request", "name resolution", "connect", "proxy")
    index = chosen_index(text, variables)
    on_index = f" on {index}" if index else ""
    if any(sign in said for sign in signs):
        # Not its address, in which there may be a password.
        proxy = next((name for name in PROXIES if variables.get(name)), None)
        through = f" through the proxy that {proxy} names" if proxy else ""
        fixes = ["correct that setting"] if index else []
        fixes += [f"correct or unset {proxy}"] if proxy else []
        fix = f": {' and '.join(fixes)}, or" if fixes else ";"
        what = f"{f' for {package}' if package else ''}{on_index}{through}{fix}"
        return f"the package index was not reached{what} run `make setup` again with a network (the log is {log})."
    if "no matching distribution found" in said:
        what = f"{on_index} was not reached, or does not offer {package or 'a package'} of requirements.lock"
        return f"the package index{what}{': correct that setting, or' if index else ','} see {log}."
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [f"exit status {status}"]
    reason = next((line for line in lines if "error" in line.lower()), lines[-1])
    return f"{reason[:300]} (the log is {log}); `make setup` tries again."


def cache_of_uv() -> Path | None:
    """The folder of uv's cache; None for a user without a home."""
    if cache := os.environ.get("UV_CACHE_DIR"):
        return Path(cache)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "uv"
    try:
        return Path.home() / ".cache" / "uv"
    except RuntimeError:  # a user without a name and without HOME, as in a container
        return None
