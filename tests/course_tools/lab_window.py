"""A notebook open in JupyterLab, in a browser: what a student sees, types and presses."""

import re
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Locator, Page, expect

SECONDS = 300
expect.set_options(timeout=1000 * SECONDS)
# Cells that are out of sight are added while the browser is idle.
READY = """(cells) => document.querySelectorAll(".jp-Notebook .jp-Cell").length === cells
  && document.querySelector(".jp-Notebook-ExecutionIndicator")?.dataset.status === "idle"
  && document.querySelector(".jp-KernelName")?.textContent.includes("Python")"""
PROMPT = re.compile(r"^\[\d+\]:$")
SELECTED = re.compile(r"\bjp-mod-selected\b")


class LabWindow:
    """JupyterLab's window with one notebook.

    page: the browser's page.  file: the notebook in the working copy.
    """

    def __init__(self, browser: Browser, address: str, copy: Path, name: str) -> None:
        """Opens `name` of the working copy `copy`, and waits for its cells and its kernel.

        address: of the server, with its token.
        """
        self.file = copy / name
        self.page: Page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        self.page.set_default_timeout(1000 * SECONDS)
        root, _, token = address.partition("/lab")
        self.page.goto(f"{root}/lab/tree/{name}?{token.partition('?')[2]}&reset")
        self.page.wait_for_function(READY, arg=len(nbformat.read(self.file, as_version=4).cells))

    # What is to be seen

    def cell(self, text: str) -> Locator:
        """The code cell that holds this text."""
        return self.page.locator(".jp-CodeCell").filter(has=self.page.locator(".jp-InputArea-editor", has_text=text))

    def is_unsaved(self) -> bool:
        """Whether the notebook's tab has the mark of unsaved changes."""
        return self.page.locator(".lm-TabBar-tab.jp-mod-dirty").count() > 0

    def menu(self, *names: str) -> list[str]:
        """Open a menu, such as ("File", "New"), and close it; returns its commands."""
        self.page.locator(".lm-MenuBar-item", has_text=names[0]).click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-item", has_text=re.compile(f"^{name}$")).hover()
        menus = self.page.locator(".lm-Menu")
        expect(menus).to_have_count(len(names))
        commands = menus.last.locator(".lm-Menu-itemLabel").all_inner_texts()
        for _ in names:
            self.page.keyboard.press("Escape")
        expect(menus).to_have_count(0)
        return commands

    # What a student does

    def choose(self, menu: str, command: str) -> None:
        """Choose a command from a menu."""
        self.page.locator(".lm-MenuBar-item", has_text=menu).click()
        self.page.locator(f'.lm-Menu-item[data-command="{command}"]').click()
        expect(self.page.locator(".lm-Menu")).to_have_count(0)

    def select(self, cell: Locator) -> None:
        """Select a code cell, without putting the cursor into it."""
        cell.locator(".jp-InputPrompt").click()
        expect(cell).to_have_class(SELECTED)

    def write(self, cell: Locator, code: str) -> None:
        """Replace the code of a cell."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(code)

    def run(self, cell: Locator) -> str:
        """Run a code cell whose prompt is empty or from this kernel; returns what it printed."""
        self.select(cell)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.page.keyboard.press("Control+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).to_have_text(PROMPT)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())

    def run_cells(self, command: str, last: Locator) -> None:
        """Clear all outputs, choose a command of the menu "Run", and wait until the cell `last` has run."""
        self.choose("Edit", "editmenu:clear-all")
        expect(last.locator(".jp-InputPrompt")).to_have_text("[ ]:")
        self.choose("Run", command)
        expect(last.locator(".jp-InputPrompt")).to_have_text(PROMPT)

    def save(self) -> None:
        """Save the notebook, and wait until it is saved."""
        self.page.keyboard.press("Control+S")
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)

    def close(self) -> None:
        """Close the notebook's tab."""
        self.page.locator(".lm-DockPanel .lm-TabBar-tab.lm-mod-current .lm-TabBar-tabCloseIcon").click()
