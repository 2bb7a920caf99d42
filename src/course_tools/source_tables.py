"""The tables of `docs/sources.md` that are made from the published numbers in `distlab.costs`."""

import re
from collections.abc import Iterator

from distlab.costs import HARDWARE, MODELS, TRANSFORMERS, efficiencies
from distlab.costs.published.split_figures import FIGURES, TITLES
from distlab.runtime import tables

BEGIN, END = "<!-- published numbers: written by `make map` -->", "<!-- end of the published numbers -->"
# How the modules of distlab.costs shorten their papers.
PAPERS = {
    "HUANG": "Huang et al., arXiv:1811.06965",
    "RAJBHANDARI": "Rajbhandari et al., arXiv:1910.02054",
    "NARAYANAN": "Narayanan et al., arXiv:2104.04473",
    "QI": "Qi et al., arXiv:2401.10241",
    "N": "Narayanan et al., arXiv:2104.04473",
}


def published_numbers() -> str:
    """All tables, each under its heading."""
    sections = (
        ("Scaling efficiencies", "results.toml", "published", _efficiencies()),
        *((title, "split_figures.toml", "published", table) for title, table in _split_figures()),
        ("Speed of one device", "networks.toml", "prediction", _speeds()),
        ("Sizes of transformers", "transformers.py", "prediction", _transformers()),
        ("Machines", "hardware.toml", "prediction", _machines()),
    )
    return "\n\n".join(
        f"### {title}\n\nFrom `src/distlab/costs/{folder}/{module}`.\n\n{table}"
        for title, module, folder, table in sections
    )


def linked(source: str) -> str:
    """The source with its paper spelt out and each arXiv number as a link."""
    names = "|".join(sorted(PAPERS, key=len, reverse=True))
    source = re.sub(rf"\b({names})(?=, (?:table|figure|section|equation))", lambda match: PAPERS[match[0]], source)
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", source)


def _efficiencies() -> str:
    rows = [
        (
            each.published.model,
            each.published.hardware,
            f"{each.published.baseline_ranks} → {each.published.ranks}",
            f"{each.published.efficiency:.1%}",
            f"{each.predicted:.1%}",
            linked(each.published.source),
        )
        for each in efficiencies.compare()
    ]
    return tables.markdown(("Network", "Machine", "GPUs", "Efficiency", "Predicted", "Source"), rows, right=(2, 3, 4))


def _split_figures() -> Iterator[tuple[str, str]]:
    for kind, title in TITLES.items():
        rows = [(each.what, f"{each.published:.4g}", linked(each.source)) for each in FIGURES if each.kind == kind]
        yield title, tables.markdown(("What", "Published", "Source"), rows, right=(1,))


def _speeds() -> str:
    rows = [
        (
            model.name,
            machine,
            f"{speed.images_per_second:g}",
            speed.batch,
            linked(speed.source),
            _read(speed.second_hand),
        )
        for model in MODELS.values()
        for machine, speed in model.measured.items()
    ]
    return tables.markdown(("Network", "Machine", "Images/s", "Batch", "Source", "Read by us"), rows, right=(2, 3))


def _transformers() -> str:
    models = TRANSFORMERS.values()
    rows = [(each.name, each.layers, f"{each.hidden:,}", each.heads, linked(each.source)) for each in models]
    return tables.markdown(("Model", "Layers", "Width", "Heads", "Source"), rows, right=(1, 2, 3))


def _machines() -> str:
    rows = [(name, each.title, linked(each.source), _read(each.second_hand)) for name, each in HARDWARE.items()]
    return tables.markdown(("Machine", "What", "Source", "Read by us"), rows)


def _read(second_hand: bool) -> str:
    return "second-hand" if second_hand else "in the original"
