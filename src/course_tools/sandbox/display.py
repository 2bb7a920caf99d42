"""What `display` is in a sandbox: as IPython outside of a notebook, it prints what it is asked to show."""


class DisplayHandle:
    """What `display(..., display_id=...)` returns: shows something again, or something else."""

    def __init__(self, display_id: object) -> None:
        """The name that the cell has given, or True."""
        self.display_id = str(display_id)

    def display(self, thing: object, **options: object) -> None:
        """Print it."""
        display(thing)

    update = display


def display(*things: object, display_id: object = None, raw: object = False, **options: object) -> DisplayHandle | None:
    """Print each thing as the last line of a cell would show it; a thing whose `repr` fails is named instead."""
    for thing in things:
        print(thing["text/plain"] if raw and isinstance(thing, dict) and "text/plain" in thing else _text_of(thing))
    return DisplayHandle(display_id) if display_id is not None else None


def _text_of(thing: object) -> str:
    try:
        return repr(thing)
    except Exception as error:
        return f"<{type(thing).__name__}, whose repr raised {type(error).__name__}>"
