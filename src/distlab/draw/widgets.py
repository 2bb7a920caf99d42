"""Widgets in notebooks that must also be readable where no widget can run."""

from IPython.display import display
from ipywidgets import Widget


def show_widget(widget: Widget, description: str) -> None:
    """Display a widget; `description` says what it does and stands where widgets cannot run."""
    display(widget._repr_mimebundle_() | {"text/plain": description}, raw=True)
