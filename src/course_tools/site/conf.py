"""What Sphinx is told of the course's site; `build` runs it with this file."""

from pathlib import Path

HERE = Path(__file__).parent

project = html_title = "Distributed training"
author = "the authors of the course"
copyright = "the authors of the course. Text and figures: CC BY 4.0, code: MIT"
language = "en"
root_doc = "index"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "course_tools.site.extension"]
templates_path = [str(HERE / "templates")]
# Solutions are shown folded in their labs; the notebook itself is only for download.
exclude_patterns = ["labs/*/solution.ipynb"]
smartquotes_action = "qe"  # and no dashes: -- begins an option
highlight_language = "text"

# Markdown and notebooks
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_merge_streams = True
nb_ipywidgets_js: dict[str, str] = {}  # widgets would come from the network; `notebook_pages` replaces them
nb_render_markdown_format = "myst"

# The reference
add_module_names = False
autoclass_content = "both"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
default_role = "code"
toc_object_entries_show_parents = "hide"

# Pages
html_math_renderer = "mathml"
html_scaled_image_link = False  # pictures have a size, which is no reason to link to them
html_static_path = [str(HERE / "static"), "static"]
html_css_files = ["course.css"]
html_js_files = ["course.js", "filter.js"]
html_sourcelink_suffix = ""
html_domain_indices = False
html_show_sphinx = False
html_context = {"default_mode": "auto"}
html_theme = "sphinx_book_theme"
html_theme_options = {
    "footer_content_items": ["copyright"],
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "navigation_with_keys": False,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "toc_title": "On this page",
    "use_fullscreen_button": False,
}
copybutton_selector = "div.cell_input div.highlight pre, div.highlight-text pre"
