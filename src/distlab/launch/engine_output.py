"""What an engine shows as its output: what Python prints, as in a notebook's kernel; C++ messages go to its log."""

from ipykernel.iostream import OutStream


class PythonOutput(OutStream):
    """Carries what is written to `sys.stdout` or `sys.stderr`, not what a library writes to the file descriptor."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, watchfd=False)
