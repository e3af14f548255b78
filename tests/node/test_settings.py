"""What a node is told, and what it says when it cannot start or go on."""

import json
import os
import sys

import pytest
from node_fixtures import Cluster, cluster

from spinney.cli import main
from spinney.model.errors import UsageError
from spinney.model.fleet import SLOTS_MAX
from spinney.node import settings_table, supervisor_main
from spinney.node.lifecycle.deadline import Deadline
from spinney.node.settings import NodeSettings

__all__ = ["cluster"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    "setting",
    [
        "lease_period_s",
        "beat_s",
        "poll_s",
        "tick_s",
        "drain_limit_s",
        "lookahead_s",
        "idle_end_s",
        "retention_s",
    ],
)
def test_a_setting_that_is_no_finite_number_is_refused(setting: str, value: float) -> None:
    with pytest.raises(UsageError, match=f"{setting} is .*finite") as refused:
        NodeSettings(store="sqlite:////x", app="a:b", folders="x", **{setting: value})
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("slots", [-1, 0, SLOTS_MAX + 1, 10**30])
def test_a_number_of_slots_that_no_host_can_have_is_refused(slots: int) -> None:
    assert NodeSettings(store="sqlite:////x", app="a:b", folders="x", slots=SLOTS_MAX).slots == SLOTS_MAX
    with pytest.raises(UsageError, match=f"slots is {slots}; it must be"):
        NodeSettings(store="sqlite:////x", app="a:b", folders="x", slots=slots)


def test_a_node_ends_when_its_first_worker_cannot_be_understood(
    cluster: Cluster, tmp_path, monkeypatch
) -> None:
    # Given an application whose types cannot be read by the supervisor
    (tmp_path / "odd_node_app.py").write_text(
        "from spinney import Spinney\n"
        "from spinney.model.types import TypeSpec\n"
        "app = Spinney()\n"
        "@app.job\n"
        "def noop() -> None: pass\n"
        "to_json = TypeSpec.to_json\n"
        "TypeSpec.to_json = lambda spec: to_json(spec) | {'stages': 5}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    node = cluster.start(app="odd_node_app:app")
    # Then it does not wait for ever
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 2
    assert "spinney: the worker cannot serve: " in log


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(cluster: Cluster) -> None:
    # Given a file where the node wants the folder of its logs
    cluster.run_dir.mkdir(mode=0o700, exist_ok=True)
    (cluster.run_dir / "logs-oak").touch()
    node = cluster.start()
    _, log = node.process.communicate(timeout=30)
    assert node.process.returncode == 1
    assert "spinney: the node cannot go on: File exists at " in log
    assert "logs-oak" in log
    assert "Traceback" not in log


def test_a_fault_is_told_in_a_sentence_and_traced_in_the_log(monkeypatch, capfd, caplog) -> None:
    # Given a supervisor whose loops end with what nobody foresaw
    async def fail(*_):
        raise ExceptionGroup("many", [ExceptionGroup("more", [KeyError("a")])])

    handover = {
        "settings": NodeSettings(store="sqlite:////x", app="a:b", folders="x").to_json(),
        "instance": ["oak", 1, 1],
        "lock_fd": os.memfd_create("lock"),
        "deadline_fd": Deadline.make().fd,
        "guard_fd": os.pipe()[0],
    }
    note = os.memfd_create("note")
    os.pwrite(note, json.dumps(handover).encode(), 0)
    monkeypatch.setattr(sys, "argv", ["supervisor", str(note)])
    monkeypatch.setattr(supervisor_main, "_run", fail)
    # When it ends
    assert supervisor_main.main() == 1
    # Then the last word is a sentence, and the log has the rest
    assert "fault in spinney (KeyError: 'a')" in capfd.readouterr().err
    (line,) = [r for r in caplog.records if r.name == supervisor_main.log.name]
    assert line.exc_info is not None
    assert line.exc_info[0] is KeyError


# --- the table [node] of spinney.toml ---------------------------------------------------------------


def test_the_table_of_the_file_sets_what_a_node_goes_by(tmp_path):
    (tmp_path / "spinney.toml").write_text(
        '[node]\nslots = 3\nlease = "1m"\nignore = ["slow"]\npostmortem_bytes = 0\n'
    )
    fields = settings_table.read(tmp_path)
    settings = NodeSettings(store="sqlite:////x", app="a:b", folders="x", **fields)
    assert (settings.slots, settings.lease_period_s, settings.ignored) == (3, 60.0, ("slow",))
    assert settings.postmortem_bytes == 0
    assert settings_table.read(tmp_path / "elsewhere") == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("slot = 3", "slot: Extra inputs"),
        ('slots = "many"', "slots: Input should be a whole number"),
        ('lease = "soon"', "lease: "),
        ("active = 3", "active: "),
    ],
)
def test_a_wrong_key_or_value_is_refused_by_its_name(tmp_path, line, reason):
    (tmp_path / "spinney.toml").write_text(f"[node]\n{line}\n")
    with pytest.raises(UsageError, match=f"spinney.toml: .node.: {reason}"):
        settings_table.read(tmp_path)


def test_an_option_wins_over_the_table_and_the_table_over_the_default(tmp_path, monkeypatch):
    taken = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spinney.node.run.become_guard", taken.append)
    (tmp_path / "spinney.toml").write_text('[node]\nslots = 3\nlog_level = "debug"\n')
    main.run(["node", "jobs:app", "--store", "sqlite:///x.db"])
    main.run(["node", "jobs:app", "--store", "sqlite:///x.db", "--slots", "5", "--log-level", "error"])
    assert [(s.slots, s.log_level) for s in taken] == [(3, "debug"), (5, "error")]
