"""The list of tasks: which files of the folder are tried again, and when."""

from pathlib import Path

import pytest

from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import programs, task_list


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "tasks").mkdir()
    return Settings(tables="sqlite://", tasks=tmp_path / "tasks", data=tmp_path / "data")


def _task(settings: Settings, script: str) -> None:
    """Write a task that notes each try beside the folder of tasks."""
    tries = settings.tasks.parent / "tries"
    (settings.tasks / "00_task.sh").write_text(f'echo tried >> "{tries}"\n{script}\n')


def _slow_task(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a task that does not identify itself in time as long as the returned file is there."""
    slow = settings.tasks.parent / "slow"
    slow.touch()
    _task(settings, f"while [ -e {slow} ]; do sleep 0.01; done; echo '{{soil}} {{}}'")
    monkeypatch.setattr(programs, "IDENTIFY_S", 0.2)
    return slow


def _tries(settings: Settings) -> int:
    tries = settings.tasks.parent / "tries"
    return len(tries.read_text().splitlines()) if tries.exists() else 0


def test_a_task_that_was_too_slow_is_tried_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_list, "RETRY_S", 0.0)
    slow = _slow_task(settings, monkeypatch)

    [broken] = task_list.read(settings).broken

    assert "did not end within 0.2 s" in broken.problem
    assert task_list.last_read(settings).is_due()

    slow.unlink()
    monkeypatch.undo()

    assert [task.name for task in task_list.read(settings).tasks] == ["soil"]
    assert not task_list.last_read(settings).broken


def test_it_is_not_tried_again_before_its_time(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_list, "RETRY_S", 1e9)
    _slow_task(settings, monkeypatch)

    first = task_list.read(settings)
    tries = _tries(settings)

    assert task_list.read(settings) == first
    assert not first.is_due()
    assert _tries(settings) == tries


def test_a_file_that_is_no_task_is_tried_again_when_it_has_changed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_list, "RETRY_S", 0.0)
    _task(settings, "exit 1")

    assert task_list.read(settings).broken
    assert not task_list.read(settings).is_due()
    assert _tries(settings) == 1

    _task(settings, "echo '{soil} {}'")
    assert [task.name for task in task_list.read(settings).tasks] == ["soil"]
