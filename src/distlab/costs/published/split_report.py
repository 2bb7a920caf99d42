"""How well the formulas of model parallelism do on published figures; every number is computed when it is asked for."""

from collections.abc import Sequence

from distlab.costs.prediction.hardware import hardware
from distlab.costs.published.split_figures import TOLERANCES, FigureComparison, compare_figures, figures_table

TITLES = {
    "bubble": "Bubble: share of the devices' time in %",
    "memory": "Model states: GB on a device",
    "throughput": f"Throughput: teraFLOP/s of a device (A100, peak {hardware('selene').matrix_flops / 1e12:g})",
}


def split_sections() -> list[tuple[str, str]]:
    """Titles and texts: one table for each kind of figure, and where the formulas are off."""
    comparisons = compare_figures()
    tables = [
        (title, figures_table([each for each in comparisons if each.figure.kind == kind]))
        for kind, title in TITLES.items()
    ]
    return [*tables, ("Where they are off", where_they_are_off(comparisons))]


def where_they_are_off(comparisons: Sequence[FigureComparison]) -> str:
    """What the differences say; `comparisons` is what `compare_figures()` gives."""
    paragraphs = []
    for kind, tolerance in TOLERANCES.items():
        described = [each for each in comparisons if each.figure.kind == kind and each.figure.is_described]
        worst = max(described, key=lambda each: abs(each.difference))
        paragraphs.append(
            f"{kind}: {sum(each.is_within for each in described)} of {len(described)} figures come within "
            f"{tolerance.within:g} {tolerance.unit}; the worst is {worst.difference:+.1f} ({worst.figure.what})."
        )
    zero = [each for each in comparisons if each.figure.kind == "throughput" and not each.figure.is_described]
    gpipe = [each for each in comparisons if each.figure.kind == "bubble" and not each.figure.is_described]
    paragraphs += [
        "The bubbles come out too small, since messages and unequal stages keep devices waiting, too. GPipe's own "
        f"throughputs ({_listed(gpipe)} points) hold everything else besides that costs time.",
        "Not a blind test: matrix_share was chosen with the throughputs in view. One number for all of them leaves "
        "room to fail.",
        f"ZeRO 3 without any other split comes out too fast ({_listed(zero)} %), the more so the more devices share a "
        "batch: it gathers all parameters over the network for every micro-batch, and the model grants it the whole "
        "link, without congestion.",
    ]
    return "\n".join(paragraphs)


def _listed(comparisons: Sequence[FigureComparison]) -> str:
    return ", ".join(f"{each.difference:+.1f}" for each in comparisons)
