"""A widget carries a description for where it cannot run."""

import ipywidgets
import pytest

from distlab import draw
from distlab.draw import widgets


def test_a_widget_is_shown_with_a_description_for_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr(widgets, "display", lambda data, raw: shown.append((data, raw)))
    slider = ipywidgets.FloatSlider(0.5)
    draw.show_widget(slider, "A slider.")
    [(data, raw)] = shown
    assert raw
    assert data["text/plain"] == "A slider."
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == slider.model_id
