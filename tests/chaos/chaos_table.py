"""The table of faults: one row a test, shown at the end of ``make chaos`` and written to ``build/chaos.json``."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos_load import Harvest
from checker import DOUBLE, LIMIT, LOST

_COLUMNS = {
    "fault": "fault",
    "store": "store",
    "jobs": "jobs",
    "attempts": "attempts",
    "lost": "lost",
    "double": "double",
    "over": "over a limit",
    "refused": "refused late records",
    "recovery_s": "time to recover",
}
"""The fields of a row, and their headings."""
_WORDS = ("fault", "store")


def row(fault: str, store: str, harvest: Harvest) -> dict[str, Any]:
    """What there is to say of one test."""
    history, kinds = harvest.history, Counter(finding.kind for finding in harvest.findings)
    recovery_s = harvest.recovery_s
    return {
        "fault": fault,
        "store": store,
        "jobs": len(history.jobs),
        "attempts": len(history.stretches),
        "lost": kinds[LOST],
        "double": kinds[DOUBLE],
        "over": kinds[LIMIT],
        "refused": len(history.refused) + harvest.grove.given_up(),
        "recovery_s": None if recovery_s is None else round(recovery_s, 2),
    }


def text(rows: Sequence[dict[str, Any]]) -> list[str]:
    """As lines of Markdown, in columns."""
    cells = [list(_COLUMNS.values()), *([_cell(row, name) for name in _COLUMNS] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    rules = [
        "-" * (w + 1) + ("-" if name in _WORDS else ":") for name, w in zip(_COLUMNS, widths, strict=True)
    ]
    lines.insert(1, f"|{'|'.join(rules)}|")
    return lines


def _cell(row: dict[str, Any], name: str) -> str:
    value = row[name]
    if name == "recovery_s":
        return "–" if value is None else f"{value:.1f} s"
    return f"{value:,}" if isinstance(value, int) else str(value)


def write(rows: Sequence[dict[str, Any]], to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    to.write_text(json.dumps(list(rows), indent=1) + "\n")
