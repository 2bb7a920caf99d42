"""The launcher with a program of one process, which may start others: the same promises."""

import pytest

from distlab import launch
from tests.distlab.launch.launched_program import Launched

LIMITS = {"seconds": 300, "echo": False}


@pytest.mark.slow
def test_one_process_gives_its_output_and_its_result(launched: Launched, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"environment": {"COLOUR": "blue"}, "seconds": 300, "result": True}
    run = launch.alone(launched.program, "all=show:COLOUR,result", **settings)
    assert run.output["program"] == "COLOUR is blue"
    assert run.exit_codes == {"program": 0}
    assert run.result is not None
    assert capsys.readouterr().out.startswith("COLOUR=blue python ")


def test_a_process_that_fails_is_named_and_what_it_started_is_ended(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed, match="program failed, exit code 3") as caught:
        launch.alone(launched.program, "all=child,say:the reason,exit3", **LIMITS)
    assert "the reason" in str(caught.value)
    assert launched.left() == []


@pytest.mark.slow
def test_a_process_that_is_not_over_in_time_is_ended(launched: Launched) -> None:
    with pytest.raises(launch.DeadlinePassed, match="still running: program"):
        launch.alone(launched.program, "all=child,wait", **(LIMITS | {"seconds": 3}))
    assert launched.left() == []


def test_the_result_may_have_any_place_in_the_arguments(launched: Launched, capsys: pytest.CaptureFixture[str]) -> None:
    program = launched.folder / "writes.py"
    program.write_text("import sys; open(sys.argv[1].removeprefix('out='), 'w').write('[1, 2]')")
    assert launch.alone(program, "out={result}", seconds=300).result == [1, 2]
    assert capsys.readouterr().out.splitlines()[0].endswith("writes.py out=result.json")


@pytest.mark.slow
def test_a_program_that_launches_itself_in_every_process_is_ended(launched: Launched) -> None:
    program = launched.folder / "again.py"
    program.write_text("from distlab import launch\nlaunch.alone(__file__, seconds=300)\n")
    with pytest.raises(launch.WorkerFailed, match=r"again\.py launches itself in every process that it starts"):
        launch.alone(program, seconds=300, echo=False)
    assert launched.left() == []


@pytest.mark.slow
def test_a_program_may_launch_itself_with_other_arguments(launched: Launched) -> None:
    program = launched.folder / "once.py"
    program.write_text(
        "import sys\nfrom distlab import launch\n"
        "print('inner') if sys.argv[1:] else print(launch.alone(__file__, 'inner', echo=False).output['program'])\n"
    )
    assert launch.alone(program, seconds=300, echo=False).output["program"] == "inner"
