"""Programs as tasks: whatever they print or do is a result of the service, and nothing of them stays."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spinney.apps.monitor import check_stages, settings
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.tasks import programs
from spinney.apps.monitor.tasks.findings import Finding, Unreadable, of_output
from spinney.apps.monitor.tasks.task_list import Task

SERVICE = Service(
    gid=7, eid=1, uuid="u-7", type="WMS", version="", uri="http://h/x?a=b c", description="Soil"
)


def run(folder: Path, script: str, timeout_s: float = 20.0) -> Finding:
    file = folder / "tasks" / "00_task.sh"
    file.parent.mkdir(exist_ok=True)
    file.write_text(script)
    command = (*programs.command_of(file), *programs.arguments_of(SERVICE, folder / "tmp", folder / "data"))
    return programs.run(command, file, timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("printed", "finding"),
    [
        ("ok {} {} {http_status_code: 200} 1700000000", Finding("ok", "http_status_code: 200", "", 1.7e9)),
        ("error bad {a page} {It is broken} 1700000000", Finding("error", "It is broken", "bad", 1.7e9)),
        ("warning slow {took long} {} x", Finding("warning", "took long", "slow", None)),
        ("not_applicable {} {} {} {}", Finding("not_applicable")),
        ('{"status": "ok", "info": "fine"}', Finding("ok", "fine")),
        (
            '{"status": "error", "code": "c", "info": "é", "timestamp": 1700000000}',
            Finding("error", "é", "c", 1.7e9),
        ),
        ("ok {} {} {in the\nlong run} 99999999999", Finding("ok", "in the\nlong run", "", None)),
    ],
)
def test_what_is_printed_is_read(printed: str, finding: Finding) -> None:
    assert of_output(f"{printed}\n") == finding


@pytest.mark.parametrize(
    "printed", ["", "ok", "{a", "a b c d e f", '{"info": 1}', '{"status": "ok", "info": 1}', "{} a b c d"]
)
def test_what_is_no_result_is_refused(printed: str) -> None:
    with pytest.raises(Unreadable):
        of_output(printed)


def test_a_program_gets_no_password_of_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "SPINNEY_STORE",
        "SPINNEY_SMTP_PASSWORD",
        "SPINNEY_WEBHOOK_SECRET_A",
        "SPINNEY_TOKEN",
        "PGPASSWORD",
    )
    for name in (*names, "SPINNEY_MONITOR"):
        monkeypatch.setenv(name, "swordfish")

    finding = run(tmp_path, 'echo "ok {} {} {$(env | grep swordfish)} 0"')

    assert finding.info == "SPINNEY_MONITOR=swordfish"


def test_a_program_gets_the_record_and_its_folders(tmp_path: Path) -> None:
    finding = run(tmp_path, 'echo "ok {} {} {$1 $2 $3 $PWD} 0"')

    assert (
        finding.info == f"7|http://h/x?a=b c|u-7|WMS|<unspecified> {tmp_path}/tmp {tmp_path}/data {tmp_path}"
    )


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("exit 3", "task_error", "exit code 3"),
        ("kill -SEGV $$", "task_error", "SIGSEGV"),
        ("echo nonsense", "unreadable_result", "a list of 1 elements"),
        ("yes | head -c 3000000", "too_much_output", "more than 1,048,576 bytes"),
        ("head -c 1000 /dev/urandom", "unreadable_result", "failed"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_service(
    tmp_path: Path, script: str, code: str, says: str
) -> None:
    finding = run(tmp_path, script)

    assert (finding.status, finding.code) == ("error", code)
    assert says in finding.info


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    finding = run(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; trap '' TERM; sleep 300", timeout_s=1.0)

    assert finding.code == "task_timeout"
    assert not _is_running(int((tmp_path / "child").read_text()))


def test_what_a_program_leaves_behind_does_not_hold_its_result(tmp_path: Path) -> None:
    finding = run(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; echo 'ok {{}} {{}} fine 0'")

    assert finding == Finding("ok", "fine")
    assert not _is_running(int((tmp_path / "child").read_text()))


def test_a_program_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "tasks" / "00_task"
    file.parent.mkdir()
    file.write_text("#!/no/such/interpreter\n")
    file.chmod(0o755)

    finding = programs.run((str(file),), file, timeout_s=5)

    assert finding.code == "not_started"


def _is_running(pid: int) -> bool:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            return False
        time.sleep(0.05)
    return Path(f"/proc/{pid}").exists()


CHECK = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from spinney.apps.monitor import check_stages
from spinney.apps.monitor.inventory.model import Service
from spinney.apps.monitor.settings import Network
from spinney.apps.monitor.tasks.findings import Finding

outside = Path(sys.argv[1])
scratches = []

def leave_things(task, config, service, context, scratch):
    scratches.append(scratch)
    (scratch / "of_root").mkdir()
    (scratch / "of_root" / "file").touch()
    closed = scratch / "closed"
    closed.mkdir()
    (closed / "link").symlink_to(outside)
    closed.chmod(0o500)
    for path in (scratch, closed, outside):
        os.chown(path, 65534, 65534)
    os.setuid(65534)
    return Finding()

check_stages.task_list.run = leave_things
config = SimpleNamespace(data=Path("/nowhere"), timeout_s=5.0, network=Network())
service = Service(gid=7, eid=1, uuid="u-7", type="WMS", version="", uri="http://h/x", description="Soil")
finding = check_stages._run(None, config, service)
print(finding.status, sorted(path.name for path in scratches[0].iterdir()), oct(outside.stat().st_mode & 0o777))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave a file of another user")
def test_what_a_task_leaves_as_another_user_costs_no_finding_and_alters_nothing_outside() -> None:
    """Given a scratch folder with a directory of root, and a closed one with a link to a file outside, when a check of
    another user ends, then its finding counts, what may be removed is gone, and the file keeps its mode."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        outside = Path(place, "outside")
        outside.write_text("x")
        outside.chmod(0o640)
        environment = os.environ | {"TMPDIR": place}
        result = subprocess.run(
            [sys.executable, "-c", CHECK, str(outside)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=place,
            timeout=60,
            check=False,
        )
        assert result.stdout.strip() == "ok ['of_root'] 0o640", result.stderr


def test_scratch_folders_of_checks_that_were_killed_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that is killed cannot remove its folder, and its job may go on at another host, or never. What people
    have put beside it stays, also under similar names."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(check_stages.task_list, "run", lambda *_: Finding())
    killed, at_work = "spinney-monitor-check-killed", "spinney-monitor-check-at-work"
    of_people = ["of-another-program", "spinney-monitor-old", "spinney-monitor-report.csv"]
    for name in (killed, at_work, *of_people[:-1]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / of_people[-1]).touch()
    day_ago_s = time.time() - 86_400
    for name in (killed, *of_people):
        os.utime(tmp_path / name, (day_ago_s, day_ago_s))
    monkeypatch.setattr(check_stages, "_abandoned", check_stages._AbandonedFolders())
    config = settings.load({"SPINNEY_STORE": f"sqlite:///{tmp_path}/spinney.db"})
    task = Task(name="t", description="", file="t", kind="program", stamp="")

    check_stages._run(task, config, SERVICE)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([at_work, *of_people])


def test_scratch_folders_are_looked_for_once_in_a_while_although_the_time_of_day_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned, killed = check_stages._AbandonedFolders(), tmp_path / "spinney-monitor-check-killed"

    def is_removed(after_s: float, day: int) -> bool:
        """Whether a folder of the day before is, so long after the machine has started, on that day of 1970."""
        killed.mkdir(exist_ok=True)
        os.utime(killed, ((day - 1) * 86_400, (day - 1) * 86_400))
        clock = SimpleNamespace(monotonic=lambda: after_s, time=lambda: day * 86_400.0)
        monkeypatch.setattr(check_stages, "time", clock)
        abandoned.remove_when_due()
        return not killed.exists()

    assert is_removed(after_s=1.0, day=300)
    assert not is_removed(after_s=2.0, day=300)
    assert is_removed(after_s=86_401.0, day=30)
