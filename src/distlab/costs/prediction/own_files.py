"""Your own network and machine, described in small TOML files; `distlab predict --help` shows one of each."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from distlab.costs.prediction.hardware import Hardware, machine
from distlab.costs.prediction.networks import Layer, Measurement, Model

FLOPS_PER_MULTIPLY_ADD = 2
Described = TypeVar("Described")


def own_network(file: Path) -> tuple[Model, Measurement | None]:
    """A network with the speed that one device trains it at, if the file says it.

    The file has `batch`, per rank, and `layers` in the order of the forward pass, each with `name`, `parameters` and
    the `flops` of one image's forward pass. It may have `title` and `images_per_second`, which one device trains.
    Raises ValueError with the file's name for anything else.
    """

    def layer(name: str, parameters: float, flops: float) -> Layer:
        return Layer(name, round(parameters), round(flops / FLOPS_PER_MULTIPLY_ADD))

    def network(
        layers: list[dict[str, Any]], batch: int, title: str = file.stem, images_per_second: float | None = None
    ) -> tuple[Model, Measurement | None]:
        speed = Measurement(images_per_second, batch, str(file)) if images_per_second else None
        return Model(file.stem, title, tuple(layer(**each) for each in layers), batch), speed

    return _described(network, file)


def own_machine(file: Path) -> Hardware:
    """A cluster with the entries of one in hardware.toml; `like` takes from that one what the file does not say.

    Raises ValueError with the file's name for anything else.
    """
    return _described(lambda **own: machine(file.stem, {"title": file.stem, "source": str(file)} | own), file)


def _described(take: Callable[..., Described], file: Path) -> Described:
    try:
        return take(**tomllib.loads(file.read_text(encoding="utf-8-sig")))
    except KeyError as error:
        raise ValueError(f"{file}: there is no {error}") from error
    except FileNotFoundError as error:
        raise ValueError(f"There is no file {file.absolute()}.") from error
    except (OSError, TypeError, ValueError) as error:  # Python says what is missing or unknown
        raise ValueError(f"{file}: {error}") from error
