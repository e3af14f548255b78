"""``make demo-receivers``, as a newcomer runs it."""

from pathlib import Path

from demos import run_demo


def test_the_whole_demo(tmp_path: Path) -> None:
    demo = run_demo("receivers", tmp_path)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "in svg: totals[tag] += number" in demo.stdout
    assert "is done" in demo.stdout
    assert "FAULT" not in demo.stdout
    files = [path.name for path in (tmp_path / "demo-receivers-out").rglob("*.svg")]
    assert len(files) == 5
