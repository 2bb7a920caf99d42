"""Takes the labs of a course folder through nbgrader, as an instructor does: `python nbgrader_course.py FOLDER`.

FOLDER holds nbgrader_config.py, source/LAB/lab.ipynb and submitted/STUDENT/LAB/lab.ipynb; one process for all steps,
since nbgrader takes long to start.
"""

import runpy
import sys
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin
from traitlets.config import Config


def main(folder: Path) -> None:
    """Generate, autograde, write feedback, export; ends with exit status 1 when a step does not succeed."""
    config = Config()
    runpy.run_path(str(folder / "nbgrader_config.py"), {"get_config": lambda: config})
    course = CourseDirectory(config=config)
    course.root = str(folder)
    nbgrader = NbGraderAPI(coursedir=course, config=config)
    for lab in sorted(path.name for path in (folder / "source").iterdir()):
        outcomes = [nbgrader.generate_assignment(lab)]
        for student in sorted(path.name for path in (folder / "submitted").iterdir()):
            outcomes += [nbgrader.autograde(lab, student), nbgrader.generate_feedback(lab, student)]
        for outcome in outcomes:
            if not outcome["success"]:
                sys.exit(outcome["log"] + str(outcome.get("error")))
    with Gradebook(course.db_url) as gradebook:
        plugin = CsvExportPlugin(config=config)
        plugin.to = str(folder / "grades.csv")
        plugin.export(gradebook)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
