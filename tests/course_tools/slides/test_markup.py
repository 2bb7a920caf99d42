"""The HTML of what a slide shows."""

from nbformat.v4 import new_output

from course_tools.slides import markup


def printed(text: str) -> tuple[str, str]:
    return markup.of_outputs([new_output("stream", text=text)])


def test_formulas_are_mathml_and_links_lead_nowhere() -> None:
    html = markup.of_line("see [this](06.ipynb), $x^2$, `a<b`")
    assert "<math" in html and "href" not in html and "<code>a&lt;b</code>" in html


def test_the_number_of_a_heading_begins_no_list() -> None:
    assert markup.of_line("1. The whole program") == "1. The whole program"


def test_a_short_table_is_shown_as_it_was_printed() -> None:
    html, rest = printed("ranks   time\n    2   4 ms\n")
    assert "ranks   time\n    2   4 ms" in html and rest == ""


def test_a_long_sentence_is_broken_and_a_long_row_or_command_cut_and_kept_for_the_speaker() -> None:
    html, rest = printed("word " * 30)
    assert "…" not in html and "\n" in html and rest
    row = "a   " * 50
    html, rest = printed(row)
    assert "…" in html and rest == row
    html, rest = printed("$ mpirun -np 2 " + "--option " * 30)
    assert html.count("\n") == 0 and "…" in html and rest.startswith("$ mpirun")


def test_what_is_printed_is_no_html() -> None:
    assert "&lt;script&gt;" in printed("<script>")[0]


def test_escape_codes_of_terminals_are_left_out() -> None:
    assert "\x1b" not in printed("\x1b[31mred\x1b[0m")[0]
