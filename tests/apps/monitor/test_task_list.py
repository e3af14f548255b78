"""The list of tasks: which files of the folder are tried again, and when."""

from pathlib import Path

import pytest

from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Settings
from spinney.apps.monitor.tasks import programs, task_list
from spinney.apps.monitor.tasks.findings import error
from spinney.apps.monitor.tasks.modules import Context


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


def test_a_module_that_does_not_load_in_time_is_an_error_of_the_service(
    settings: Settings, tmp_path: Path
) -> None:
    (settings.tasks / "00_slow.py").write_text(
        "import sys, time\n"
        "if 'spinney.apps.monitor.tasks.identify_module' not in sys.orig_argv:\n"
        "    time.sleep(20)\n"
        "NAME, check = 'slow', lambda service, context: None\n"
    )
    [task] = task_list.read(settings).tasks
    service = Service(gid=7, eid=1, uuid="u-7", type="WMS", version="", uri="http://h/x", description="Soil")
    context = Context(timeout_s=0.2, data=tmp_path, network=settings.network)

    finding = task_list.run(task, settings, service, context, tmp_path)

    assert finding == error("task_timeout", "the task did not end within 0.2 s")
