"""The main job on a bundled sample: file, plan, release, certificate, before and after."""

import shutil
import sys
from pathlib import Path

from rich.console import RenderableType

from microveil.cli.demo_screen import demo_screen
from microveil.errors import FileError
from microveil.formats import moved_into_place
from microveil.formats.atomic import check_place
from microveil.judge.verdict import verdict
from microveil.plan.propose.purposes import proposed_uses
from microveil.plan.sample import people, recommended_people_plan
from microveil.plan.survey import survey, survey_plan
from microveil.release.protect import protect
from microveil.types import Progress


def own_command() -> str:
    """Return how to call microveil again from where it was called: a line that can be pasted."""
    called, known = Path(sys.argv[0]), shutil.which("microveil")
    if called.name != "microveil" or not called.exists():
        return "microveil"
    return "microveil" if known and Path(known).samefile(called) else str(called)


def run_demo(
    directory: Path,
    *,
    epsilon: float | None = None,
    households: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[RenderableType]:
    """Write the sample, its plan and its release to a directory; return what to show.

    The sample is one of people, or a survey of households.
    """
    before = survey() if households else people()
    plan = survey_plan() if households else recommended_people_plan(1.0)
    plan = plan if epsilon is None else plan.replace(epsilon=epsilon)
    plan = plan.replace(uses=proposed_uses(plan, before))
    sample = "survey.csv" if households else "people.csv"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{directory}: cannot be created: {error.strerror}") from None
    inputs = [directory / sample, directory / "plan.toml"]
    for path in inputs:
        check_place(path, overwrite=overwrite, source=None)
    release = protect(before, plan, keep_order=True, progress=progress)
    written = release.write(directory / "protected.parquet", detail=True, overwrite=overwrite)
    with moved_into_place(inputs) as temporary:
        before.write_csv(temporary[0])
        temporary[1].write_text(plan.to_toml(), encoding="utf-8")
    found = verdict(before, release)
    publish = found.may_publish(written.certified)
    files = {
        sample: "the original sample",
        "plan.toml": "how each attribute is treated",
        written.protected.name: "publish this file ..." if publish else "the release",
        written.certificate.name: "... together with this certificate"
        if publish
        else "its certificate",
        "protected.detail.zip": "private: clusters and noise scales",
    }
    return [
        *demo_screen(before, release, found),
        "",
        f"Written to {directory}:",
        *(f"  {name:<28}{what}" for name, what in files.items()),
        f"Next: {own_command()} certificate {written.certificate}",
    ]
