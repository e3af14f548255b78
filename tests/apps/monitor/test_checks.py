"""Checks as a real node does them: tasks in their order, results, stops, and deaths of the node."""

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from long_tests import LONG
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import results

from .monitor import Monitor, service

FILE = pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
"""For what does not depend on the database: a node takes seconds to start."""
SERVER = pytest.mark.parametrize("monitor", ["postgresql"], indirect=True)
OK = 'echo "ok {} {} {fine} $(date +%s)"'


@SERVER
def test_tasks_run_in_order_and_an_error_ends_the_check(monitor: Monitor) -> None:
    """On SQLite the examples for those who write tasks show it (``test_task_page``)."""
    monitor.task("00_first.sh", OK)
    monitor.task(
        "01_second.sh",
        'case $type in WFS) echo "error bad {} {It is a WFS} 0";; WCS) echo "not_applicable {} {} {} {}";; '
        'CSW) echo "warning odd {} {It is a CSW} 0";; *) echo "ok {} {} {second} 0";; esac',
    )
    monitor.task("02_third.sh", OK)
    monitor.import_([service(1), service(2, type="WFS"), service(3, type="WCS"), service(4, type="CSW")])
    monitor.start_node()
    sequence = monitor.check("--all")
    monitor.wait(lambda: monitor.is_settled(sequence))

    fine = ("ok", "fine")
    assert monitor.status(1) == {"first": fine, "second": ("ok", "second"), "third": fine}
    assert monitor.status(2) == {"first": fine, "second": ("error", "It is a WFS")}
    assert monitor.status(3) == {"first": fine, "third": fine}
    assert monitor.status(4) == {"first": fine, "second": ("warning", "It is a CSW"), "third": fine}
    assert monitor.job(sequence)["state"] == "completed"


@FILE
def test_a_tcl_task_of_procedures_runs_unmodified_and_one_that_hangs_or_dies_is_an_error(
    monitor: Monitor,
) -> None:
    (monitor.place / "tasks" / "00_congruence.tcl").write_text(
        "proc identify {} { return [list congruence check_record {Record Check}] }\n"
        "proc check_record {task_d tmp_space uuid_space} {\n"
        "    set job_d [dict get $task_d job]\n"
        '    if {[dict get $job_d description] eq ""} {\n'
        '        return [::ngis::tasks::make_warning_result "undefined" "" "Undefined description"]\n    }\n'
        '    return [::ngis::tasks::make_ok_result "[dict get $job_d description] of [dict get $job_d entity]"]\n}\n'
    )
    monitor.task("01_odd.sh", f"[ $gid = 1 ] && sleep 100; [ $gid = 2 ] && kill -9 $$; {OK}")
    monitor.import_([service(1), service(2), service(3, description="")])
    monitor.start_node()
    sequence = monitor.check("1", "2", "3")
    monitor.wait(lambda: monitor.is_settled(sequence))

    assert monitor.status(1) == {
        "congruence": ("ok", "Map 1 of Sea Institute"),
        "odd": ("error", "the task did not end within 5 s"),
    }
    assert monitor.status(2) == {
        "congruence": ("ok", "Map 2 of Sea Institute"),
        "odd": ("error", "the task failed with signal SIGKILL"),
    }
    assert monitor.status(3) == {"congruence": ("warning", "Undefined description"), "odd": ("ok", "fine")}
    assert monitor.job(sequence)["state"] == "completed"


@FILE
def test_a_stopped_sequence_ends_after_the_tasks_at_work(monitor: Monitor, tmp_path: Path) -> None:
    monitor.task(
        "00_slow.sh", f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; {OK}"
    )
    monitor.task("01_never.sh", OK)
    monitor.import_([service(number, uri=f"http://h{number}/") for number in range(1, 21)])
    monitor.start_node()
    sequence = monitor.check("--all")
    monitor.wait((tmp_path / "began").exists)
    assert monitor.shell.ok("monitor", "stop", "--all") == "1 sequences stopped\n"
    (tmp_path / "go").touch()
    monitor.wait(lambda: monitor.is_settled(sequence))

    stored = Counter(task for gid in range(1, 21) for task in monitor.status(gid))
    assert 1 <= stored["slow"] < 20
    assert stored["never"] == 0


@FILE
def test_only_tasks_that_are_there_and_apply_count_in_the_state_of_a_service(monitor: Monitor) -> None:
    fails = monitor.task("00_fails.sh", 'echo "error broken {} {} $(date +%s)"')
    monitor.task("01_not_this.sh", 'echo "not_applicable {} {} {} $(date +%s)"')
    monitor.import_([service(1), service(2)])
    monitor.start_node()
    first = monitor.check("1")
    monitor.wait(lambda: monitor.is_settled(first))
    assert _states(monitor) == {"error": 1, "warning": 0, "ok": 0, "unchecked": 1}

    fails.unlink()
    assert "fails" not in monitor.shell.ok("monitor", "tasks")
    assert _states(monitor) == {"error": 0, "warning": 0, "ok": 1, "unchecked": 1}
    assert monitor.status(1)["fails"] == ("error", "")  # what it found stays to be read

    second = monitor.check("2")
    monitor.wait(lambda: monitor.is_settled(second))
    assert monitor.status(2) == {}
    assert _states(monitor) == {"error": 0, "warning": 0, "ok": 2, "unchecked": 0}


@FILE
def test_the_result_of_a_task_that_no_longer_applies_is_dropped(monitor: Monitor) -> None:
    monitor.task(
        "00_map.sh",
        'case $type in WMS) echo "error bad {} {} 0";; *) echo "not_applicable {} {} {} 0";; esac',
    )
    monitor.task("01_other.sh", OK)
    monitor.import_([service(1)])
    monitor.start_node()
    as_map = monitor.check("1")
    monitor.wait(lambda: monitor.is_settled(as_map))
    assert _states(monitor)["error"] == 1

    monitor.import_([service(1, type="HTTP")])
    as_other = monitor.check("1")
    monitor.wait(lambda: monitor.is_settled(as_other))

    assert monitor.status(1) == {"other": ("ok", "fine")}
    assert _states(monitor) == {"error": 0, "warning": 0, "ok": 1, "unchecked": 0}
    assert [change.status for change in results.changes(database(), gid=1)] == ["ok", "error"]


def _states(monitor: Monitor) -> dict[str, int]:
    return dict(json.loads(monitor.shell.ok("monitor", "status", "--json"))["services"])


KILLS, SERVICES = (20, 400) if LONG else (2, 40)


@FILE
def test_a_node_killed_at_random_leaves_no_service_unchecked_and_no_result_twice(monitor: Monitor) -> None:
    tasks = ("a", "b", "c")
    for number, name in enumerate(tasks):
        monitor.task(f"0{number}_{name}.sh", f"sleep 0.05; {OK}")
    monitor.import_(
        [service(number, uri=f"http://h{number % 9}/{number}") for number in range(1, SERVICES + 1)]
    )
    sequence = monitor.check("--all")
    for kill in range(KILLS):
        node = monitor.start_node(slots=8)
        monitor.wait(lambda seen=kill: _stored() > seen * SERVICES // KILLS * 1.2)  # type: ignore[misc]
        node.send_signal(signal.SIGKILL)
        node.wait()
    monitor.start_node(slots=8)
    monitor.wait(lambda: monitor.is_settled(sequence))

    history = results.changes(database(), limit=100_000)
    assert Counter((change.gid, change.task) for change in history) == {
        (gid, task): 1 for gid in range(1, SERVICES + 1) for task in tasks
    }


def _stored() -> int:
    return len(results.changes(database(), limit=100_000))


@FILE
def test_time_limit_and_pause_that_are_changed_count_when_the_node_starts_again(monitor: Monitor) -> None:
    """The stages keep the limit with which they were declared; a longer one would be cut off by the engine, and a
    longer pause would use it up."""
    module = """
from spinney.apps.monitor.tasks.findings import Finding
NAME, DESCRIPTION = "limit", "The time limit"
def check(service, context):
    network = context.network
    return Finding(info=f"{context.timeout_s:g} s, {network.pause_s:g} s, slow after {network.slow_s:g} s")
"""
    (monitor.place / "tasks" / "10_limit.py").write_text(module)
    monitor.import_([service(1)])
    monitor.start_node()
    limits = []
    for timeout_s, pause_s, slow_s in ((5, 0, 10), (60, 6, 7)):
        (monitor.place / "monitor.toml").write_text(
            (monitor.place / "monitor.toml").read_text().partition("timeout_s")[0]
            + f"timeout_s = {timeout_s}\n[network]\npause_s = {pause_s}\nslow_s = {slow_s}\n"
        )
        sequence = monitor.check("1")
        monitor.wait(lambda sequence=sequence: monitor.is_settled(sequence))
        limits.append(monitor.status(1)["limit"][1])
    assert limits == ["5 s, 0 s, slow after 10 s", "5 s, 0 s, slow after 7 s"]


def test_broken_files_are_told_and_left_out(monitor: Monitor) -> None:
    monitor.task("00_good.sh", OK)
    monitor.task("01_loud.sh", OK, identify="{unclosed")
    monitor.task("02_same.sh", OK, identify="{good} {The same name again}")
    (monitor.place / "tasks" / "03_bad.py").write_text("import nothing_of_the_kind\n")
    (monitor.place / "tasks" / "04_mute.sh").write_text("exit 1\n")
    (monitor.place / "tasks" / "05_warns.sh").write_text("echo '{warns} {}'; echo 'tool is missing' >&2\n")

    listed = monitor.shell.ok("monitor", "tasks")

    assert [line.split()[0] for line in listed.splitlines()[1:2]] == ["good"]
    for file in ("01_loud.sh", "02_same.sh", "03_bad.py", "04_mute.sh", "05_warns.sh"):
        assert file in listed
    assert listed.count("left out:") == 5
    assert "identify printed on stderr: tool is missing" in listed


@FILE
def test_the_node_is_replaced_when_the_tasks_change_and_started_again_when_it_dies(monitor: Monitor) -> None:
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write('[socket]\nlisten = ""\n')
    monitor.task("00_first.sh", OK)
    monitor.import_([service(1)])
    running = monitor.start("monitor", "run")
    first = monitor.check("1")
    monitor.wait(lambda: monitor.is_settled(first))
    assert list(monitor.status(1)) == ["first"]

    monitor.task("01_second.sh", OK)
    monitor.wait(lambda: _checked_by(monitor, "second"))
    monitor.task("01_second.sh", OK).unlink()
    for node in monitor.nodes_of(running):
        node.kill()
    monitor.wait(lambda: _checked_by(monitor, "first"))
    assert running.poll() is None


def _checked_by(monitor: Monitor, task: str) -> bool:
    """Whether a new check of service 1 has a result of this task."""
    sequence = monitor.check("1")
    monitor.wait(lambda: monitor.is_settled(sequence))
    return task in monitor.status(1)


@FILE
def test_a_node_that_dies_again_and_again_is_started_after_longer_and_longer_pauses(monitor: Monitor) -> None:
    with (monitor.place / "monitor.toml").open("a") as file:
        file.write('[socket]\nlisten = ""\n')
    running = monitor.start("monitor", "run")
    log = monitor.place / "node-0.log"
    for deaths in (1, 2, 3):
        monitor.wait(lambda: bool(monitor.nodes_of(running)))
        for node in monitor.nodes_of(running):
            node.kill()
        monitor.wait(lambda seen=deaths: log.read_text().count("the node has ended") == seen)  # type: ignore[misc]

    pauses = [float(pause) for pause in re.findall(r"started again in ([0-9.]+) s", log.read_text())]
    assert pauses == [pauses[0], 2 * pauses[0], 4 * pauses[0]]
