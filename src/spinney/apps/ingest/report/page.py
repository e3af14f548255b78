"""The report as HTML: one self-contained page for mails and browsers, with a light and a dark theme.

The template is ``report.html``. It is escaped by Jinja2, and without scripts, pictures or anything that is fetched,
which the page itself forbids, too.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.apps.ingest.report import lines
from spinney.apps.ingest.report.builder import Report
from spinney.apps.ingest.report.text import FAILURES, UNCHANGED

if TYPE_CHECKING:
    from jinja2 import Template


def html(report: Report, *, limit: int = FAILURES, completed: int = 0) -> str:
    """Return the page.

    ``limit``: how many failed objects it lists, and how many unchanged ones; ``completed``: how many
    completed ones. A list says how many more there are.
    """
    return _template().render(
        report=report, lines=lines, UNCHANGED=UNCHANGED, limit=limit, completed=completed
    )


@cache
def _template() -> "Template":
    """Return the template, which is compiled once for each process."""
    # Imported here: a worker loads the application, and must stay light.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(Path(__file__).with_name("report.html").read_text("utf-8"))
