"""What an error shows of what a process printed."""

from distlab.launch.last_lines import cut


def test_a_line_without_end_is_cut_and_its_end_stays() -> None:
    assert cut("short") == "short"
    assert cut("x" * 2000) == "x" * 2000
    line = "x" * 30_000_000 + "ValueError: the end"
    shown = cut(line)
    assert len(shown) < 2100 and shown.endswith("ValueError: the end")
    assert shown.startswith("(29,998,019 characters are left out) x")
