"""A link that leads nowhere is told from a file, a folder and a link that leads somewhere."""

from pathlib import Path

from distlab.runtime.links import dangling


def test_only_a_link_that_leads_nowhere_is_dangling(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "good").symlink_to("folder")
    (tmp_path / "bad").symlink_to("/nowhere/gone")
    for name in ("folder", "good", "good/new", "new"):
        assert dangling(tmp_path / name) is None
    sentence = f"{tmp_path / 'bad'} is a link to /nowhere/gone, which does not exist"
    assert dangling(tmp_path / "bad") == dangling(tmp_path / "bad" / "below") == sentence
