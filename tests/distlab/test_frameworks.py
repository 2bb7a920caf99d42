"""The environments of the other frameworks: what is missing is said with its fix, and nothing is done twice."""

import hashlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from course_tools.setup import install_frameworks
from distlab import frameworks


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the locks and without any environment."""
    monkeypatch.setattr(frameworks, "PROJECT", tmp_path)
    return tmp_path


@pytest.fixture
def layouts() -> ModuleType:
    """The conversion of weights."""
    specification = importlib.util.spec_from_file_location("layouts", frameworks.LAB / "layouts.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def pretend_installed(project: Path, part: str) -> None:
    interpreter = frameworks.interpreter(frameworks.PARTS[part].folder)
    interpreter.parent.mkdir(parents=True, exist_ok=True)
    interpreter.touch()
    frameworks.record(part).write_text(frameworks.recipe(part))


@pytest.mark.parametrize("part", frameworks.PARTS)
def test_what_is_not_installed_is_said_with_the_command_that_gets_it(project: Path, part: str) -> None:
    reason = frameworks.problem(part)
    assert frameworks.PARTS[part].title in reason and f"`{frameworks.PARTS[part].command}`" in reason
    with pytest.raises(frameworks.FrameworkMissing, match="is not installed"):
        frameworks.python(part)


def test_what_is_installed_has_no_problem_until_its_lock_changes(project: Path) -> None:
    pretend_installed(project, "torch")
    assert frameworks.problem("torch") is None
    frameworks.record("torch").write_text(frameworks.recipe("torch").replace(" ", " 0", 1))
    assert "up to date" in frameworks.problem("torch")


def test_deepspeed_without_pytorch_is_a_problem(project: Path) -> None:
    pretend_installed(project, "deepspeed")
    assert "PyTorch is not installed" in frameworks.problem("deepspeed")


def test_what_is_there_is_not_installed_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("torch", "deepspeed"):
        pretend_installed(project, part)
    monkeypatch.setattr(install_frameworks, "_pip", lambda *arguments: pytest.fail("pip was called"))
    install_frameworks.install("deepspeed")


def test_an_installation_that_fails_leaves_no_record(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(part: str, *arguments: str) -> None:
        raise install_frameworks.SetupFailed("no network")

    monkeypatch.setattr(install_frameworks, "make_environment", lambda *arguments: None)
    monkeypatch.setattr(install_frameworks, "_pip", fail)
    pretend_installed(project, "torch")
    frameworks.record("torch").write_text("of another lock")
    with pytest.raises(install_frameworks.SetupFailed, match="no network"):
        install_frameworks.install("torch")
    assert frameworks.installed("torch") is None


def test_a_pytorch_of_several_gigabytes_is_not_taken_unasked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(install_frameworks, "make_environment", lambda *arguments: None)
    monkeypatch.setattr(install_frameworks, "_pip", lambda part, *arguments: calls.append(arguments))
    monkeypatch.setattr(install_frameworks, "brings_gpu_libraries", lambda part: True)
    monkeypatch.setattr(install_frameworks.devices, "gpu_names", list)
    with pytest.raises(install_frameworks.SetupFailed, match="PIP_EXTRA_INDEX_URL"):
        install_frameworks.install("torch")
    assert not any("torch==2.13.0" in call for call in calls)


def test_a_lock_that_a_killed_build_left_is_cleared_and_a_failing_build_is_named(project: Path) -> None:
    pretend_installed(project, "deepspeed")
    interpreter = frameworks.interpreter(frameworks.PARTS["deepspeed"].folder)
    interpreter.write_text("#!/bin/sh\necho no compiler; exit 1\n")
    interpreter.chmod(0o755)
    lock = project / frameworks.FRAMEWORKS / "extensions" / "deepspeed_shm_comm" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(install_frameworks.SetupFailed, match=r"\(no compiler\).*needs a C\+\+ compiler"):
        install_frameworks.compile_extension()
    assert not lock.exists()


@pytest.mark.parametrize("part", frameworks.PARTS)
def test_a_lock_pins_every_package_with_hashes_and_names_no_host(part: str) -> None:
    text = frameworks.lock(part).read_text()
    pins = re.findall(r"^[\w.-]+(?:\[[\w,-]+\])?==.+\\\n {4}--hash=sha256:", text, re.MULTILINE)
    entries = re.findall(r"^[\w.-]+", text, re.MULTILINE)
    assert len(pins) == len(entries) > 0
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)
    assert not re.search(r"^(torch|nvidia-[\w-]+|triton)==", text, re.MULTILINE)


@pytest.mark.parametrize("part", ["torch", "deepspeed", "ray"])
def test_a_lock_over_the_course_has_the_courses_versions(part: str, root: Path) -> None:
    def pins(file: Path) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for name, version in re.findall(r"^([\w.-]+)==([^ ;\\]+)", file.read_text(), re.MULTILINE):
            found.setdefault(name, set()).add(version)
        return found

    course, own = pins(root / "requirements.lock"), pins(frameworks.lock(part))
    assert {name: versions for name, versions in own.items() if name in course and not versions <= course[name]} == {}


def test_the_recipe_changes_with_the_lock(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = frameworks.recipe("torch")
    assert hashlib.sha256(frameworks.lock("torch").read_bytes()).hexdigest() in before
    monkeypatch.setattr(frameworks, "LAB", tmp_path)
    (tmp_path / "torch.lock").write_text("other")
    assert frameworks.recipe("torch") != before


def weights_of(random: np.random.Generator) -> list[np.ndarray]:
    shapes = [(3, 3, 1, 16), (16,), (13 * 13 * 16, 64), (64,), (64, 10), (10,)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def test_weights_come_back_as_they_were(layouts: ModuleType) -> None:
    weights = weights_of(np.random.default_rng(0))
    back = layouts.to_channels_last(layouts.to_channels_first(weights))
    assert all(np.array_equal(one, other) for one, other in zip(weights, back, strict=True))


def forward(weights: list[np.ndarray], image: np.ndarray, channels_first: bool) -> np.ndarray:
    """The network on one image (28, 28), by loops over positions alone."""
    kernel, bias, dense, dense_bias, head, head_bias = weights
    maps = np.empty((26, 26, 16))
    for row in range(26):
        for column in range(26):
            window = image[row : row + 3, column : column + 3]
            for channel in range(16):
                part = kernel[channel, 0] if channels_first else kernel[:, :, 0, channel]
                maps[row, column, channel] = np.sum(window * part) + bias[channel]
    pooled = np.maximum(maps, 0).reshape(13, 2, 13, 2, 16).max(axis=(1, 3))
    if channels_first:
        hidden = np.maximum(dense @ pooled.transpose(2, 0, 1).reshape(-1) + dense_bias, 0)
        return head @ hidden + head_bias
    hidden = np.maximum(pooled.reshape(-1) @ dense + dense_bias, 0)
    return hidden @ head + head_bias


def test_converted_weights_are_the_same_function_and_transposed_ones_are_not(layouts: ModuleType) -> None:
    random = np.random.default_rng(1)
    weights, image = weights_of(random), random.random((28, 28))
    expected = forward(weights, image, channels_first=False)
    converted = layouts.to_channels_first(weights)
    np.testing.assert_allclose(forward(converted, image, channels_first=True), expected, rtol=1e-5)
    converted[2] = weights[2].T
    assert np.max(np.abs(forward(converted, image, channels_first=True) - expected)) > 1


def test_weights_are_written_and_read_in_order_beside_other_arrays(layouts: ModuleType, tmp_path: Path) -> None:
    weights = [np.full(index + 1, index, np.float32) for index in range(12)]
    layouts.write(tmp_path / "file.npz", weights, images=np.zeros(3))
    found = layouts.read(tmp_path / "file.npz")
    assert [array.tolist() for array in found] == [array.tolist() for array in weights]
