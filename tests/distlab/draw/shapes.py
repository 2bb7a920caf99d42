"""What a strip consists of: how many shapes of each name it has."""

from collections import Counter

from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

FRAMES = ("chunk", "no chunk", "finished chunk", "wrong chunk")


def drawn(figure: Figure) -> Counter:
    """How many shapes of each name the strip has, its legend left out."""
    counts = Counter()
    for collection in figure.axes[0].collections:
        if isinstance(collection, PathCollection) and collection.get_label() != "sample":
            counts[collection.get_label()] += len(collection.get_offsets())
    return counts
