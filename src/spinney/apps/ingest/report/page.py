"""The report as HTML: one self-contained page for mails and browsers, with a light and a dark theme.

It is escaped by Jinja2, and without scripts, pictures or anything that is fetched, which the page itself forbids, too.
"""

from functools import cache
from typing import TYPE_CHECKING

from spinney.apps.ingest.report import lines
from spinney.apps.ingest.report.builder import Report
from spinney.apps.ingest.report.text import FAILURES, UNCHANGED

if TYPE_CHECKING:
    from jinja2 import Template


def html(report: Report, *, limit: int = FAILURES, completed: int = 0) -> str:
    """Return the page. ``limit``: how many failed objects it lists; ``completed``: how many completed ones."""
    return _template().render(
        report=report, lines=lines, UNCHANGED=UNCHANGED, limit=limit, completed=completed
    )


@cache
def _template() -> "Template":
    # Imported here: a worker loads the application, and must stay light.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_PAGE)


_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ lines.title(report) }}</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  background: #fff; color: #1b1f24; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 400; color: #57606a; padding: .1rem 1.5rem .1rem 0; vertical-align: top; }
td { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
li { margin: .6rem 0; overflow-wrap: anywhere; }
a { color: #0550ae; }
.small { color: #57606a; font-size: .875rem; }
.completed { color: #116329; }
.failed { color: #a40e26; }
.processing { color: #7d4e00; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #e2e6ea; }
  th, .small { color: #9aa4af; }
  a { color: #79b8ff; }
  .completed { color: #6fcf87; }
  .failed { color: #ff8f8f; }
  .processing { color: #e5b567; }
}
</style>
</head>
<body>
{% macro object(end, detailed) %}
<li>
{% set url = lines.link(end.link) %}
{% if url %}<a href="{{ url }}">{{ lines.label(end) }}</a>{% else %}<b>{{ lines.label(end) }}</b>{% endif %}
<span class="small">{{ lines.known_as(end) }}</span>
{% if detailed %}
<br>{{ lines.where(end) }}
{% if end.message %}<br>{{ lines.message(end.message) }}{% endif %}
{% elif end.unchanged %}
<br>{{ lines.unchanged_reason(end) }}
{% endif %}
</li>
{% endmacro %}
{% macro listed(title, ends, limit, detailed) %}
{% if ends and limit %}
<h2>{{ title }} ({{ "{:,}".format(ends | length) }})</h2>
<ul>
{% for end in ends[:limit] %}
{{ object(end, detailed) }}
{% endfor %}
</ul>
{% if ends | length > limit %}<p class="small">… and {{ "{:,}".format(ends | length - limit) }} more</p>{% endif %}
{% endif %}
{% endmacro %}
<h1 class="{{ report.state }}">{{ lines.title(report) }}</h1>
{% if report.facts.fault %}
<p class="failed">The batch failed: {{ lines.message(report.facts.fault) }}</p>
{% endif %}
<table>
{% for name, value in lines.summary(report) %}
<tr><th scope="row">{{ name }}</th><td>{{ value }}</td></tr>
{% endfor %}
</table>
{% if report.facts.warnings %}
<h2>Warnings</h2>
<ul>
{% for warning in lines.warnings(report) %}
<li>{{ warning }}</li>
{% endfor %}
</ul>
{% endif %}
{% if report.changes is not none %}
<h2>Since the last report</h2>
<table>
{% for word, names in lines.changes(report.changes) %}
<tr><th scope="row">{{ word }}</th><td>{{ names }}</td></tr>
{% else %}
<tr><td>nothing</td></tr>
{% endfor %}
</table>
{% endif %}
{{ listed("Failed objects", report.failed, limit, true) }}
{{ listed(UNCHANGED, lines.unchanged(report), limit, false) }}
{{ listed("Completed objects", report.completed, completed, false) }}
{% set url = lines.link(report.facts.link) %}
{% if url %}<p><a href="{{ url }}">All of it</a></p>{% endif %}
</body>
</html>
"""
