"""The comparison with other job queues (``benchmarks/peers``): Spinney is measured alone, and every peer is named."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def bench_peers(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the comparison where no peer is installed."""
    paths = [ROOT, ROOT / "tests", ROOT / "src"]
    ours = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PEERS_BUILD": str(tmp_path / "peers")}
    command = [sys.executable, "-m", "benchmarks.peers", *words]
    return subprocess.run(command, cwd=tmp_path, env=os.environ | ours, capture_output=True, text=True)


def test_a_drain_of_spinney_is_measured_and_every_missing_peer_is_named(tmp_path: Path) -> None:
    done = bench_peers(tmp_path, "--rounds", "1", "--jobs", "100", "--case", "drain")

    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|", done.stdout, re.MULTILINE)
    figures = {name: (bulk, drain) for name, bulk, drain in rows[2:12]}
    for ours in ("Spinney, SQLite", "Spinney, PostgreSQL"):
        assert all(float(value.replace(",", "")) > 0 for value in figures.pop(ours))
    assert set(figures) == {
        "graphile-worker",
        "PGQueuer",
        "Procrastinate",
        "huey, SQLite",
        "huey, Redis",
        "Celery, Redis",
        "Dramatiq, Redis",
        "DBOS",
    }
    assert set(figures.values()) == {("–", "–")}
    for missing in figures:
        assert f"- {missing}: it is not installed (" in done.stdout


@pytest.mark.parametrize(
    ("word", "names"), [("no-such", "choose from"), ("--case=no-such", "invalid choice")]
)
def test_an_unknown_name_is_refused_with_those_that_exist(tmp_path: Path, word: str, names: str) -> None:
    words = [word] if word.startswith("--") else ["--peer", word]

    done = bench_peers(tmp_path, *words)

    assert done.returncode == 2
    assert names in done.stderr
    assert "fairness" in done.stderr or "Procrastinate" in done.stderr
