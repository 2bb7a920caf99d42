"""Which package index pip and uv use instead of the usual one, and the variable or file of settings that names it.

This module imports the standard library only: nothing is installed yet.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

# How pip names its indexes, if there are others, and uv the address that it cannot fetch.
_NAMED = re.compile(r"(?m)^(?:Looking in indexes|.*Failed to fetch): .*$")
_ADDRESS = re.compile(r"https?://[^\s`,]+")


def chosen_index(text: str, variables: Mapping[str, str]) -> str | None:
    """The host of an index in what pip or uv has said, and the setting that names it; None if no setting does.

    Only the host: there may be a password in the address.
    """
    addresses = [address for line in _NAMED.findall(text) for address in _ADDRESS.findall(line)]
    for host in filter(None, (urlsplit(address).hostname for address in addresses)):
        if place := _place(host, variables):
            return f"{host}, which {place} names"
    return None


def _place(host: str, variables: Mapping[str, str]) -> str | None:
    for name, value in variables.items():
        if name.startswith(("PIP_", "UV_")) and host in value:
            return name
    for file in _settings(variables):
        with suppress(OSError):
            if host in file.read_text(errors="replace"):
                return str(file)
    return None


def _settings(variables: Mapping[str, str]) -> Iterator[Path]:
    """The files that pip or uv may read, in any order: one of them names the host."""
    for name in ("PIP_CONFIG_FILE", "UV_CONFIG_FILE"):
        if file := variables.get(name):
            yield Path(file)
    home, system = Path(variables.get("HOME", "/")), Path("/etc")
    folders = [Path(variables.get("XDG_CONFIG_HOME") or home / ".config"), system, system / "xdg"]
    folders += [folder / "Library" / "Application Support" for folder in (home, Path("/"))]  # macOS
    yield from (folder / file for folder in folders for file in ("pip/pip.conf", "uv/uv.toml"))
    yield from (home / ".pip" / "pip.conf", system / "pip.conf")
