"""Spinney passes a strict type checker, and so do the snippets of the guide, as the applications that are made of them
should."""

import subprocess
import sys
from pathlib import Path

import pytest

from snippets import texts

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs" / f"{name}.md" for name in ("tutorial", "applications", "promises")),
    *sorted((ROOT / "docs" / "applications").glob("*.md")),
]
CALLS = """
from collections.abc import Coroutine
from typing import Any, assert_type

from spinney import Nothing, Spinney  # type: ignore[attr-defined]
from spinney.errors import Nothing as NoError  # type: ignore[attr-defined]

app = Spinney()


@app.job
def words(text: str) -> int:
    return len(text.split())


@app.job(max_attempts=3)
async def size(url: str) -> float:
    return 1.0


def both() -> int:
    return words("a b") + words(text="c")


assert_type(words("a"), int)
assert_type(size("b"), Coroutine[Any, Any, float])
words(3)  # type: ignore[arg-type]
for kind in (words, size):
    kind.submit_many([])
"""
"""An application that calls the functions of its job types, and imports names that there are not."""


HEADER = '# mypy: disable-error-code="empty-body,unused-coroutine"\n'
"""A function of a snippet may have no body, where the page is about its options."""


@pytest.mark.timeout(900)  # where mypy has no cache
def test_spinney_snippets_and_calls_of_job_types_pass_mypy_strict(tmp_path: Path) -> None:
    """With the settings of the project, which are strict. All in one run: ``make test`` checks types with this test
    alone."""
    for page in PAGES:
        module = tmp_path / f"{page.stem.replace('-', '_')}_page.py"
        module.write_text(HEADER + "\n".join(texts(page, "python")))
    (tmp_path / "calls.py").write_text(HEADER + CALLS)

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "src/spinney", *tmp_path.glob("*.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
