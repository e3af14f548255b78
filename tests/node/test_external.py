"""External stages on real nodes: they leave them alone, and look after the parties that run them."""

import time

import pytest
from node_fixtures import House, house, now_us, until

from spinney.control import Control
from spinney.control.external import External
from spinney.model.errors import UsageError
from spinney.model.external import Settlement
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from spinney.node.settings import NodeSettings
from spinney.nudge import nudge_all

__all__ = ["house"]

APP = "external_app:app"


def external(house: House) -> External:
    return Control(store=house.store, clock=now_us, nudge=lambda: nudge_all(house.run_dir), by="ann").external


def test_a_node_runs_what_stands_before_and_behind_an_external_stage_and_leaves_it_alone(
    house: House,
) -> None:
    # Given a node with a job in its hands that comes to an external stage
    house.node(app=APP)
    (job_id,) = house.submit("talk", {"file": "a.wav", "language": "de"})
    until(lambda: house.store.job(job_id).stage == "listen", "the node has fetched it")
    why = house.store.explaining.explain(job_id, now_us=now_us())
    assert why.cause == "no party"

    # When a party joins, which is given it at once, although the node was there first and idle
    ear = external(house)
    party = ear.join("ear", [("talk", "listen")], lease_s=60)
    (work,) = until(lambda: ear.claim(party.key, seen=0).work, "it is claimed")
    assert (work.job_id, work.params, work.results) == (
        job_id,
        {"file": "a.wav", "language": "de"},
        {"fetch": 5},
    )
    ear.settle(party.key, work.job_id, work.fence, Settlement(outcome=Outcome.OK, result="hello"))

    # Then the node goes on with it
    (job,) = house.settled([job_id])
    assert job.state is State.COMPLETED
    assert [(a.stage, a.node) for a in house.attempts(job_id)] == [
        ("fetch", "oak"),
        ("listen", "external:ear"),
        ("keep", "oak"),
    ]
    assert house.store.results(job_id)["keep"] == "5 hello"


def test_a_node_takes_back_what_a_silent_party_had_and_what_takes_too_long(house: House) -> None:
    house.node(app=APP)
    silent_job, slow_job = house.submit("solo", {}, {})
    ear = external(house)
    silent = ear.join("silent", [("solo", "solo")], lease_s=2)
    slow = ear.join("slow", [("solo", "solo")], lease_s=600)
    begun = time.monotonic()
    assert [w.job_id for w in ear.claim(silent.key, seen=0).work] == [silent_job]
    assert [w.job_id for w in ear.claim(slow.key, seen=0).work] == [slow_job]

    # The time limit counts although the slow one may be silent for long
    until(lambda: house.store.job(slow_job).state is State.FAILED, "it exceeds its time limit")
    assert time.monotonic() - begun >= 2
    assert house.attempts(slow_job)[-1].outcome is Outcome.TIMEOUT
    until(
        lambda: not [p for p in house.store.parties.all() if p.name == "silent"], "the silent party has left"
    )
    assert [p.name for p in house.store.parties.all()] == ["slow"]


def test_no_node_is_called_as_parties_are() -> None:
    with pytest.raises(UsageError, match="begins the names of parties"):
        NodeSettings(store="sqlite:///x.db", app="a:b", folders="f", name="external:ear")
