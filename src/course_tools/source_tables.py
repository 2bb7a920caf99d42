"""The tables of `docs/sources.md` that are made from the published numbers in `distlab.costs`."""

import re
from collections.abc import Iterable, Iterator

from distlab.costs import HARDWARE, MODELS, TRANSFORMERS
from distlab.costs.published.efficiencies import RESULTS
from distlab.costs.published.split_figures import FIGURES, TITLES

Figure = tuple[str, str, str]
"""Its source, what it is a figure of, and the figure."""

IN_BRACKETS = {"bubble": "micro-batches", "memory": "devices", "throughput": "split: tensor × pipeline × data"}

# How the modules of distlab.costs shorten their papers.
PAPERS = {
    "HUANG": "Huang et al., arXiv:1811.06965",
    "RAJBHANDARI": "Rajbhandari et al., arXiv:1910.02054",
    "NARAYANAN": "Narayanan et al., arXiv:2104.04473",
    "QI": "Qi et al., arXiv:2401.10241",
    "N": "Narayanan et al., arXiv:2104.04473",
}


def published_numbers() -> str:
    """All numbers, in a section for each kind, by their sources."""
    sections = (
        (
            "Scaling efficiencies",
            "In %, of one GPU's speed or that of as many as named; in brackets the GPUs.",
            _efficiencies(),
        ),
        *((title, f"In brackets the {IN_BRACKETS[kind]}.", _split_figures(kind)) for kind, title in TITLES.items()),
        ("Speed of one device", "In images per second; in brackets the batch.", _speeds()),
        ("Sizes of transformers", "Layers, width and heads.", _transformers()),
        ("Machines", "What the predictions know of each.", _machines()),
    )
    return "\n\n".join(f"### {title}\n\n{opening}\n\n{_list(figures)}" for title, opening, figures in sections)


def linked(source: str) -> str:
    """The source with its paper spelt out and each arXiv number as a link."""
    names = "|".join(sorted(PAPERS, key=len, reverse=True))
    source = re.sub(rf"\b({names})(?=, (?:table|figure|section|equation))", lambda match: PAPERS[match[0]], source)
    return re.sub(r"arXiv:(\d{4}\.\d{4,5})", r"[arXiv:\1](https://arxiv.org/abs/\1)", source)


def _efficiencies() -> Iterator[Figure]:
    for row in RESULTS:
        start = f"from {row.baseline_ranks} GPUs" if row.baseline_ranks > 1 else ""
        batch = f"batch {row.speed.batch}" if row.speed else ""
        what = ", ".join(filter(None, (row.model, row.hardware, row.program, batch, start)))
        yield row.source, what, f"{100 * row.efficiency:.1f} ({row.ranks})"


def _split_figures(kind: str) -> Iterator[Figure]:
    for each in FIGURES:
        if each.kind == kind:
            what, _, detail = (each.what.partition if kind == "throughput" else each.what.rpartition)(", ")
            detail = re.sub(r"(tensor|pipeline|data) | (micro-batches|devices?)$", "", detail)
            yield each.source, what, f"{each.published:.4g} ({detail})"


def _speeds() -> Iterator[Figure]:
    for model in MODELS.values():
        for machine, speed in model.measured.items():
            figure = f"{model.name} {speed.images_per_second:g} ({speed.batch})"
            yield _named(speed.source, speed.second_hand), machine, figure


def _transformers() -> Iterator[Figure]:
    for each in TRANSFORMERS.values():
        yield each.source, each.name, f"{each.layers}, {each.hidden:,}, {each.heads}"


def _machines() -> Iterator[Figure]:
    for name, each in HARDWARE.items():
        yield _named(each.source, each.second_hand), name, each.title


def _named(source: str, second_hand: bool) -> str:
    return source + " (second-hand)" * second_hand


def _list(figures: Iterable[Figure]) -> str:
    """A list of sources, below each what it says of what; figures of one thing are in one line."""
    listed: dict[str, dict[str, list[str]]] = {}
    for source, what, figure in figures:
        listed.setdefault(source, {}).setdefault(what, []).append(figure)
    lines = []
    for source, by_thing in listed.items():
        lines.append(f"- {linked(source)}")
        lines += [f"    - {what}: {', '.join(of_thing)}" for what, of_thing in by_thing.items()]
    return "\n".join(lines)
