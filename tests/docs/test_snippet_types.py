"""The snippets of the guide pass a strict type checker, as the applications that are made of them should."""

import os
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


@pytest.mark.timeout(600)  # without a cache mypy reads all that Spinney imports
def test_the_snippets_of_each_page_pass_mypy_strict(tmp_path: Path) -> None:
    for page in PAGES:
        module = tmp_path / f"{page.stem.replace('-', '_')}_page.py"
        module.write_text("\n".join(texts(page, "python")))

    # A function of a snippet may have no body, where the page is about its options.
    checked = subprocess.run(
        [
            sys.executable,
            *(
                "-m",
                "mypy",
                "--strict",
                "--disable-error-code=empty-body",
                f"--cache-dir={tmp_path / 'cache'}",
            ),
            "--config-file=",
            ".",
        ],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
