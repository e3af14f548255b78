"""What nodes declare: job types and queues, known to everybody without importing anybody's code."""

from collections.abc import Callable

import pytest

from spinney.model.errors import Refused
from spinney.model.settings.queues import QueueSpec
from spinney.model.types import Isolation
from spinney.store.parts import Store

from .words import ONE, Site, kind, locked, stage

RICH = kind(
    "rich",
    stage(
        "load",
        isolation=Isolation.PROGRAM,
        program=("bin/load", "-x"),
        exit_codes={3: "warning"},
        locks=locked("receiver:{serno}", until="job"),
        queue="net",
        timeout_s=2.5,
        max_attempts=4,
    ),
    stage("report", again=True),
    schema={"type": "object", "required": ["serno"]},
    priority=3,
    children="settled",
    serial=True,
    on_lost="orphan",
    poison_after=2,
    description="what it is for",
)


def test_a_registered_type_is_known_to_everybody_as_it_was_told(
    site: Site, open_another: Callable[[], Store]
) -> None:
    site.knows(RICH)

    assert site.store.types()["rich"] == RICH
    assert open_another().types()["rich"] == RICH


def test_a_later_registration_of_a_name_replaces_the_earlier(
    site: Site, open_another: Callable[[], Store]
) -> None:
    other = open_another()
    assert other.types()["one"] == ONE

    newer = kind("one", "prepare", "work", description="newer")
    site.knows(newer)

    assert other.types()["one"] == newer


def test_registering_some_types_forgets_no_others(site: Site) -> None:
    before = site.store.types()

    site.knows(RICH)

    assert site.store.types() == {**before, "rich": RICH}


def test_a_declared_queue_is_known_and_may_be_declared_anew(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="net", limit=3, order="fifo")])
    site.knows(queues=[QueueSpec(name="net", limit=8, order="lifo", sharing="shares")])

    assert site.store.queues()["net"] == QueueSpec(name="net", limit=8, order="lifo", sharing="shares")


@pytest.mark.parametrize(
    "changed",
    [QueueSpec(name="net", order="lifo"), QueueSpec(name="net", sharing="none")],
    ids=["order", "sharing"],
)
def test_order_and_sharing_cannot_change_while_jobs_stand_in_the_queue(
    site: Site, changed: QueueSpec
) -> None:
    before = QueueSpec(name="net", order="default", sharing="shares")
    site.knows(queues=[before])
    site.submit_one(queue="net")

    with pytest.raises(Refused):
        site.knows(queues=[changed])

    assert site.store.queues()["net"] == before


def test_order_may_change_once_the_queue_is_empty(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="net")])
    site.submit_one(queue="net")
    site.drain()

    site.knows(queues=[QueueSpec(name="net", order="lifo")])

    assert site.store.queues()["net"].order == "lifo"


def test_the_limit_may_change_at_any_time(site: Site) -> None:
    site.knows(queues=[QueueSpec(name="net", limit=0)])
    site.submit(n=3, queue="net")

    site.knows(queues=[QueueSpec(name="net", limit=2)])

    assert len(site.claim(slots=4)) == 2


def test_create_again_keeps_what_is_there(site: Site, open_another: Callable[[], Store]) -> None:
    job = site.submit_one()

    open_another().create()

    assert site.job(job).type == "one"
    assert site.claim_one().job_id == job


def test_close_may_be_called_twice(open_another: Callable[[], Store]) -> None:
    store = open_another()
    store.create()

    store.close()
    store.close()


def test_facts_are_names_and_texts_to_print(store: Store) -> None:
    facts = store.facts()

    assert facts
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in facts.items())
