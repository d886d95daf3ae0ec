"""The page: runs are read, judged and set into the template, and one file is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from golden.files import write_whole
from golden.torch.instruments.report import histograms, timeline, words
from golden.torch.instruments.report.advice import case_of
from golden.torch.instruments.report.limits import EVENTS, IN_A_STEP, LIMITS
from golden.torch.instruments.report.reading import read_run
from golden.torch.instruments.report.records import PASSES, Run
from golden.torch.instruments.report.rules import RULES
from golden.torch.instruments.report.views import RunView, comparison, levels_text

__all__ = ["names_of", "page", "write_report"]

_PARTS = Path(__file__).parent / "template"


def write_report(places: Sequence[Path], output: Path, advance: Callable[[int], None] = lambda size: None) -> None:
    """Write the page of one run, or of several with a comparison.

    Parameters
    ----------
    places : sequence of Path
        The folders of the runs.
    output : Path
        The file; it is complete, or as it was before.
    advance : callable
        Is told, now and then, how many more bytes of the runs have been read.

    Raises
    ------
    ValueError
        If a run has no observations, or they are damaged.
    OSError
        If the file cannot be written.
    """
    if output.is_dir():
        raise ValueError(f"output: got {output}, which cannot be written: it is a folder")
    runs = [read_run(place, name, advance) for place, name in zip(places, names_of(places), strict=True)]
    text = page(runs)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, text.encode())
    except OSError as error:
        raise ValueError(f"output: got {output}, which cannot be written: {error.strerror}") from None


def names_of(places: Sequence[Path]) -> list[str]:
    """Return a name for each run: its folder, or its whole path where two folders have the same name."""
    folders = [place.parent if place.is_file() else place for place in places]
    short = [folder.resolve().name or str(folder) for folder in folders]
    names = [name if short.count(name) == 1 else str(folder) for name, folder in zip(short, folders, strict=True)]
    seen: Counter[str] = Counter()
    for at, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[at] = f"{name} ({seen[name]})"
    return names


def page(runs: Sequence[Run]) -> str:
    """Return the page of some runs as HTML."""
    cases = [case_of(run) for run in runs]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_PARTS),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in words.__all__:
        environment.filters[name] = getattr(words, name)
    environment.filters["breakable"] = _breakable
    return environment.get_template("page.html.jinja").render(
        runs=[RunView(case) for case in cases],
        comparison=comparison(cases) if len(cases) > 1 else None,
        overlay=timeline.timeline(runs) if len(runs) > 1 else None,
        limits=LIMITS,
        events=EVENTS,
        in_a_step=IN_A_STEP,
        passes=PASSES,
        rules=RULES,
        histograms=histograms,
        timeline=timeline,
        levels_text=levels_text,
        style=Markup((_PARTS / "style.css").read_text(encoding="utf-8")),
        script=Markup((_PARTS / "script.js").read_text(encoding="utf-8")),
    )


def _breakable(name: str) -> Markup:
    """Return a module's name that may be broken after its dots; the model itself has an empty one."""
    return Markup(".<wbr>").join(escape(part) for part in name.split(".")) if name else Markup("<i>the model</i>")
