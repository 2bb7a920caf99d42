"""HTML pages of notebooks that need no network: images inside, formulas as MathML, and an index."""

import base64
import mimetypes
import os
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from urllib.parse import quote

import jinja2
import nbformat
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.reader import NotJSONError

from course_tools import runner, user_folders
from course_tools.notebooks import WIDGET_VIEW
from course_tools.runner import NotebookOutcome
from course_tools.site.chapters import how_to_repair
from course_tools.site.mathml import mathml

FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<inline>[^$\n]+?)\$(?![\w$])", re.DOTALL)
PICTURE = re.compile(r"!\[(?P<description>[^\]]*)\]\((?P<file>[^):\s]+)\)")
ATTACHMENT = re.compile(r"\battachment:([^\s)>\"']+)")
CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
# nbconvert's page without the scripts that it would fetch from the network.
TEMPLATE = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_jquery -%}{%- endblock -%}
{%- block html_head_js_requirejs -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block html_head_css -%}
<style>
/* Long lines of code are broken, so that nothing is cut off on a narrow screen or on paper. */
.jp-InputArea-editor pre, .jp-RenderedText pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.jp-RenderedHTMLCommon .highlight pre { font: var(--jp-code-font-size)/1.3 monospace; margin: 0 0 1em; }
/* Lines of a difference: removed and added; their sign stays, so that colour is not alone. */
.highlight .gd { background: #fde8e0; color: #7c2d12; }
.highlight .gi { background: #dceefb; color: #0c4a6e; }
math { font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "DejaVu Math TeX Gyre", math; }
.jp-RenderedHTMLCommon img, .jp-RenderedSVG svg { max-width: 100%; height: auto; }
</style>
{%- endblock -%}
"""
GLOSSARY = "glossary.html"
WIDGET_NOTE = "<p><em>In JupyterLab there is a slider here.</em></p>"

INDEX = jinja2.Environment(autoescape=True).from_string("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Distributed training: the executed notebooks</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .75rem; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.failed { color: #9a3412; font-weight: 600; }
</style></head><body>
<h1>Distributed training: the executed notebooks</h1>
<table>
<tr><th>Notebook</th><th>Status</th><th class="number">Seconds</th><th class="number">Memory, MiB</th></tr>
{% for name, title, has_page, outcome in rows -%}
<tr><td>{% if has_page %}<a href="{{ name }}.html">{{ title }}</a>{% else %}{{ title }}{% endif -%}
{% if outcome.error is not none %}<br>{{ outcome.error }}{% endif %}</td>
<td class="{{ outcome.status }}">{{ outcome.status }}</td>
<td class="number">{{ "%.0f" | format(outcome.seconds) }}</td>
<td class="number">{{ "{:,.0f}".format(outcome.peak_memory_mib) }}</td></tr>
{% endfor -%}
</table>
</body></html>
""")


def write_pages() -> int:
    """Write a page of each committed notebook to `build/html`; 1 if one cannot be read."""
    notebooks = Path("notebooks")
    files = runner.choose(notebooks)
    pages = user_folders.announced("build", "the pages go") / "html"
    write_glossary(notebooks, pages)
    damaged = []
    for notebook in files:
        try:
            missing = write_page(notebook, pages / f"{notebook.stem}.html", notebooks)
            print(pages / f"{notebook.stem}.html", *missing, sep="\n")
        except NotJSONError:
            damaged.append(f"{notebook} cannot be read as a notebook; {how_to_repair(notebook)}.")
    print("\n".join(damaged), end="\n" if damaged else "")
    return 1 if damaged else 0


def write_page(notebook_file: Path, page: Path, folder: Path) -> list[str]:
    """Convert one executed notebook into one HTML file that shows everything without a network.

    `folder` is where the notebook belongs: the pictures in its text are named relative to it. Returns a sentence for
    each picture that was pasted into a text and is not in the notebook; the page shows its description.
    """
    notebook = nbformat.read(notebook_file, as_version=4)
    missing = [name for cell in notebook.cells if cell.cell_type == "markdown" for name in _without_picture(cell)]
    _write(notebook, page, folder)
    return [f"The picture {name} is not in {notebook_file.name}: paste it again." for name in missing]


def write_glossary(folder: Path, pages: Path) -> None:
    """Convert docs/glossary.md, to which the notebooks in `folder` link, into a page next to theirs."""
    text = folder.parent / "docs" / "glossary.md"
    if text.is_file():
        cell = nbformat.v4.new_markdown_cell(text.read_text())
        _write(nbformat.v4.new_notebook(cells=[cell]), pages / GLOSSARY, folder)


def _write(notebook: NotebookNode, page: Path, folder: Path) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = with_pictures(with_mathml(cell.source), folder)
        elif cell.cell_type == "code":
            cell.outputs = [_without_widget(output) for output in cell.outputs]
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(raw_template=TEMPLATE)
    html, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": title_of(notebook)}})
    page.parent.mkdir(parents=True, exist_ok=True)
    # Links between notebooks become links between pages; those to other files of the course lead there from the page.
    html = re.sub(r'href="(?:\.\./notebooks/)?(\d\d_\w+)\.ipynb', r'href="\1.html', html)
    html = html.replace('href="../docs/glossary.md', f'href="{GLOSSARY}')
    to_course = os.path.relpath(folder.parent, page.parent)
    page.write_text(re.sub(r'href="\.\./', f'href="{to_course}/', html))


def write_index(folder: Path, outcomes: Mapping[str, NotebookOutcome]) -> Path:
    """Write `index.html` next to the pages: each notebook's title, status, seconds and memory."""
    rows = []
    for name, outcome in outcomes.items():
        page = folder / f"{name}.html"
        rows.append((name, _page_title(page) or name, page.exists(), outcome))
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "index.html"
    index.write_text(INDEX.render(rows=rows))
    return index


def with_mathml(text: str) -> str:
    """Markdown with its $…$ and $$…$$ formulas replaced by MathML, which browsers draw themselves; code stays."""
    parts = CODE.split(text)
    return "".join(part if index % 2 else FORMULA.sub(_formula, part) for index, part in enumerate(parts))


def with_pictures(text: str, folder: Path) -> str:
    """Markdown whose pictures, files named relative to `folder`, are inside the text; code stays.

    (nbconvert's own way of embedding closes every HTML tag where it opens, which breaks folded answers and MathML.)
    """

    def embedded(match: re.Match[str]) -> str:
        file = folder / match["file"]
        if not file.is_file():
            return match[0]
        kind = mimetypes.guess_type(file)[0]
        content = base64.b64encode(file.read_bytes()).decode()
        return f"![{match['description']}](data:{kind};base64,{content})"

    parts = CODE.split(text)
    return "".join(part if index % 2 else PICTURE.sub(embedded, part) for index, part in enumerate(parts))


def _without_picture(cell: NotebookNode) -> list[str]:
    """The attachments that the cell's text names and that it lacks; it has an empty one of each afterwards."""
    attachments = cell.setdefault("attachments", {})
    named = {name for part in CODE.split(cell.source)[::2] for name in ATTACHMENT.findall(part)}
    missing = sorted(named - attachments.keys())
    for name in missing:  # nbconvert looks for the name as in an address
        attachments[name] = attachments[quote(name, safe="%")] = {"image/png": ""}
    return missing


def title_of(notebook: NotebookNode) -> str:
    """The text of the notebook's first heading."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (heading := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)):
            return heading[1].strip()
    return "Notebook"


def _formula(match: re.Match[str]) -> str:
    if match["block"]:
        return mathml(match["block"], "block")
    return mathml(match["inline"], "inline")


def _without_widget(output: NotebookNode) -> NotebookNode:
    if WIDGET_VIEW not in output.get("data", {}):
        return output
    return nbformat.v4.new_output("display_data", data={"text/html": WIDGET_NOTE})


def _page_title(page: Path) -> str | None:
    title = re.search(r"<title>(.*?)</title>", page.read_text(), re.DOTALL) if page.exists() else None
    return unescape(title[1].strip()) if title else None
