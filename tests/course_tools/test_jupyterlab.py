"""The course in JupyterLab as `make lab` opens it, in a browser: what students see, a player, answers to a lab."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import nbformat
import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from course_tools import jupyterlab_server
from distlab.runtime import processes
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
RING = "notebooks/06_collectives_and_ring_all_reduce.ipynb"
LAB = "labs/06_collectives_and_ring_all_reduce/lab.ipynb"
START = "notebooks/00_start_here.ipynb"
NEXT_CHUNK = """async def reduce_scatter(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    return chunks[right]"""
OF_NBGRADER = ("nbgrader", "Formgrader", "Create Assignment", "Course List", "Assignment List")


Server = tuple[str, psutil.Process]
SECONDS = 300
expect.set_options(timeout=1000 * SECONDS)
# Cells that are out of sight are added while the browser is idle.
READY = """(cells) => document.querySelectorAll(".jp-Notebook .jp-Cell").length === cells
  && document.querySelector(".jp-Notebook-ExecutionIndicator")?.dataset.status === "idle"
  && document.querySelector(".jp-KernelName")?.textContent.includes("Python")"""
PROMPT = re.compile(r"^\[\d+\]:$")
SELECTED = re.compile(r"\bjp-mod-selected\b")


class LabWindow:
    """JupyterLab's window with one notebook of the working copy."""

    def __init__(self, browser: Browser, address: str, copy: Path, name: str) -> None:
        """Opens it, and waits for its cells and its kernel; the address of the server is with its token."""
        self.file = copy / name
        self.page: Page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        self.page.set_default_timeout(1000 * SECONDS)
        root, _, token = address.partition("/lab")
        self.page.goto(f"{root}/lab/tree/{name}?{token.partition('?')[2]}&reset")
        self.page.wait_for_function(READY, arg=len(nbformat.read(self.file, as_version=4).cells))

    def cell(self, text: str) -> Locator:
        """The code cell that holds this text."""
        return self.page.locator(".jp-CodeCell").filter(has=self.page.locator(".jp-InputArea-editor", has_text=text))

    def choose(self, menu: str, command: str) -> None:
        """Choose a command from a menu."""
        self.page.locator(".lm-MenuBar-item", has_text=menu).click()
        self.page.locator(f'.lm-Menu-item[data-command="{command}"]').click()
        expect(self.page.locator(".lm-Menu")).to_have_count(0)

    def select(self, cell: Locator) -> Locator:
        """Select a code cell, without putting the cursor into it; its prompt."""
        prompt = cell.locator(".jp-InputPrompt")
        prompt.click()
        expect(cell).to_have_class(SELECTED)
        return prompt

    def write(self, cell: Locator, code: str) -> None:
        """Replace the code of a cell."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(code)

    def run(self, cell: Locator) -> str:
        """Run a code cell whose prompt is empty or from this kernel; returns what it printed."""
        prompt = self.select(cell)
        before = prompt.inner_text()
        self.page.keyboard.press("Control+Enter")
        expect(prompt).not_to_have_text(before)
        expect(prompt).to_have_text(PROMPT)
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())

    def save(self) -> None:
        """Save the notebook, and wait until it is saved."""
        self.choose("File", "docmanager:save")  # while a player has the focus, keys are its own
        expect(self.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that leads to the course, for a working copy of its own."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("docs", "figures", "labs", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def listening(process: psutil.Process) -> set[str]:
    """The addresses of this machine on which a process listens."""
    return {each.laddr.ip for each in process.net_connections() if each.status == psutil.CONN_LISTEN}


@pytest.fixture(scope="module")
def server(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Where `distlab lab` listens, with its token, and its process; Jupyter is set up for another course, too."""
    home = tmp_path_factory.mktemp("home")
    settings = home / ".jupyter"
    settings.mkdir()
    (settings / "jupyter_server_config.json").write_text('{"IdentityProvider": {"hashed_password": "argon2:another"}}')
    (settings / "jupyter_lab_config.py").write_text("c.ServerApp.base_url = '/elsewhere'\n")
    variables = os.environ | {"HOME": str(home), "BROWSER": "true", "MPLCONFIGDIR": matplotlib.get_configdir()}
    variables |= {"JUPYTER_CONFIG_PATH": str(settings), "MPLBACKEND": "TkAgg", "MAKEFLAGS": " -- ONLY=03"}
    variables |= dict.fromkeys(("ALL_PROXY", "all_proxy"), "socks5://127.0.0.1:1080")
    mark = processes.new_mark()
    command = [sys.executable, "-m", "course_tools", "lab"]
    server = processes.start(command, mark, cwd=course, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert server.stdout
    try:
        said = ""
        while "token=" not in said:
            line = server.stdout.readline()
            assert line, f"the server has ended:\n{said}"
            said += line
        threading.Thread(target=server.stdout.read, daemon=True).start()  # a full pipe would stop the server
        assert f"Your working copy is {course / 'work'};" in said
        process = psutil.Process(server.pid)
        while not listening(process):  # it says its address first
            time.sleep(0.05)
        yield "http" + line.partition("http")[2].strip(), process
    finally:
        processes.end(mark)
        server.wait()


def test_the_server_listens_on_this_machine_alone_and_what_is_set_for_another_course_does_not_matter(
    server: Server,
) -> None:
    address, process = server
    root, _, token = address.partition("/lab")
    contents = urllib.request.urlopen(f"{root}/api/contents/notebooks?{token.rpartition('?')[2]}", timeout=300).read()
    assert b"00_start_here.ipynb" in contents and "elsewhere" not in address
    assert listening(process) == {"127.0.0.1"}
    assert not {"MPLBACKEND", "MAKEFLAGS"} & process.environ().keys()


def test_no_second_server_is_started_on_one_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("CONFIG_DIR", "RUNTIME_DIR"):
        monkeypatch.setenv(f"JUPYTER_{name}", str(tmp_path))
    for name in ("SETTINGS_DIR", "WORKSPACES_DIR"):
        monkeypatch.setenv(f"JUPYTERLAB_{name}", str(tmp_path))
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail("a second server is started"))
    info = {"pid": os.getpid(), "root_dir": str(tmp_path), "url": "http://127.0.0.1:8889/", "token": "abc"}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(info))
    jupyterlab_server.open_copy(tmp_path)
    address = "http://127.0.0.1:8889/lab/tree/notebooks/00_start_here.ipynb?token=abc"
    assert f"already runs on this copy: open {address} " in capsys.readouterr().out
    assert jupyterlab_server.running_on(tmp_path / "another") is None


def test_students_see_the_course_and_no_tools_of_teachers(browser: Browser, server: Server, course: Path) -> None:
    window = LabWindow(browser, server[0], course / "work", START)
    before = window.file.read_bytes()
    toolbar = window.page.locator(".jp-NotebookPanel-toolbar")
    expect(toolbar.get_by_title("Save and create checkpoint")).to_have_count(1)
    expect(toolbar.get_by_text("Validate")).to_have_count(0)
    window.page.locator(".lm-MenuBar-item", has_text="View").click()
    commands = window.page.locator(".lm-Menu .lm-Menu-itemLabel").all_inner_texts()
    assert commands and [each for each in commands if any(name in each for name in OF_NBGRADER)] == []
    window.page.keyboard.press("Escape")
    window.page.locator(".jp-BreadCrumbs-home").click()
    expect(window.page.locator(".jp-DirListing-itemName")).to_have_text(["labs", "notebooks", "solutions"])
    expect(window.page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    assert window.file.read_bytes() == before


def test_the_player_walks_through_the_ring_by_keyboard(browser: Browser, server: Server, course: Path) -> None:
    window = LabWindow(browser, server[0], course / "work", RING)
    cell = window.cell("draw.play(")
    following = window.cell("on 1 to 9 ranks")
    window.select(following)
    window.choose("Run", "notebook:run-all-above")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(PROMPT)
    player = cell.locator(".distlab-player")
    expect(player.locator(".rank")).to_have_count(4)
    slider, status = player.get_by_role("slider", name="Step"), player.get_by_role("status")
    slider.press("ArrowRight")
    expect(status).to_contain_text("Step 1 of 6: rank 0 sends chunk 0 to rank 1")
    slider.press("ArrowUp")  # moves the slider, not the selected cell
    expect(status).to_contain_text("Step 2 of 6")
    window.save()
    cells = nbformat.read(ROOT / RING, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    ran = 1 + next(place for place, source in enumerate(code) if "draw.play(" in source)
    assert re.search(rf"06 collectives and ring all reduce +{ran} of {len(code)} ", progress(window))


def test_a_wrong_answer_gets_a_hint_and_the_right_one_passes(browser: Browser, server: Server, course: Path) -> None:
    window = LabWindow(browser, server[0], course / "work", LAB)
    expect(window.page.locator(".lm-TabBar-tab[data-lab='Lab 06']")).to_have_count(1)
    for text in ("labs.open(", "async def one_step("):
        window.run(window.cell(text))
    answer, check = window.cell("async def reduce_scatter("), window.cell('lab.check("reduce_scatter")')
    window.write(answer, NEXT_CHUNK)
    window.run(answer)
    assert "finished" in window.run(check)
    picture = check.locator(".jp-RenderedSVG img")
    expect(picture).to_be_visible()
    assert picture.evaluate("(picture) => picture.naturalWidth") >= 20
    expect(picture).to_have_accessible_name(re.compile("rank"))
    solution = nbformat.read(ROOT / LAB.replace("lab.ipynb", "solution.ipynb"), as_version=4).cells
    window.write(answer, next(cell.source for cell in solution if "async def reduce_scatter(" in cell.source))
    window.run(answer)
    assert "✔ reduce_scatter is right, 4 of 4 points" in " ".join(window.run(check).split())
    window.save()
    assert re.search(r"06 collectives and ring all reduce .* 1 of 4", progress(window))


def progress(window: LabWindow) -> str:
    """What `distlab progress` says of the working copy of this notebook."""
    command = [sys.executable, "-m", "course_tools", "progress"]
    course = next(folder for folder in window.file.parents if folder.name == "work").parent
    return subprocess.run(command, cwd=course, capture_output=True, text=True, check=True).stdout
