"""Another program has the file of the store locked for longer than a lease: nodes keep what they have."""

import sqlite3
from pathlib import Path

from node_fixtures import House, house, lines, until

from spinney.model.states import State

__all__ = ["house"]


def test_nodes_outlast_a_foreign_lock_with_what_they_run(house: House, tmp_path: Path) -> None:
    # Given two nodes of one file, each with a job at work
    logs = {name: tmp_path / f"{name}.log" for name in ("oak", "elm")}
    nodes = [house.start(name=name, slots=1, log=log).joined() for name, log in logs.items()]
    go = house.file("go")
    jobs = house.submit("wait_for", *[{"file": str(go), "note_in": str(house.file("notes"))}] * 2)
    until(lambda: all(house.store.job(job).state == State.RUNNING for job in jobs), "both run")

    # When somebody locks it for longer than a lease, so that each has said several times that it cannot beat
    foreign = sqlite3.connect(tmp_path / "spinney.db", isolation_level=None)
    foreign.execute("begin exclusive")
    for log in logs.values():
        until(lambda log=log: sum("cannot beat, and it goes on" in line for line in lines(log)) > 3, "they say so")
    go.touch()
    foreign.execute("rollback")
    foreign.close()

    # Then both are there, nothing was interrupted, and work goes on
    assert [job.state for job in house.settled(jobs)] == [State.COMPLETED] * 2
    assert [[attempt.outcome for attempt in house.attempts(job)] for job in jobs] == [["ok"]] * 2
    assert [node.process.poll() for node in nodes] == [None, None]
    assert house.run("noop")[0].state == State.COMPLETED
    for node in nodes:
        node.term()
        assert node.wait() == 0
    assert "declared dead" not in "".join(log.read_text() for log in logs.values())
