"""Batches in the middle of their work: what is shown of them, and what stops them."""

from typing import Any

import pytest

from contract.words import RealClock, Site, submission
from spinney.apps.ingest.deposits import orders
from spinney.apps.ingest.deposits.orders import ObjectOrder, Payload
from spinney.apps.ingest.deposits.states import BatchState
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.verbs import holds
from spinney.apps.ingest.verbs.arrivals import submit
from spinney.apps.ingest.verbs.batches import Batches, Objects, Report, Status
from spinney.apps.ingest.verbs.deletions import Delete
from spinney.apps.ingest.verbs.holds import Hold, Pause, Release
from spinney.apps.ingest.verbs.lookup import Batch, batches, find_batch
from spinney.apps.ingest.verbs.requeues import Requeue
from spinney.apps.ingest.verbs.service import Service
from spinney.apps.ingest.verbs.submission import Submit
from spinney.features.holds.commands import LayHold, sweep_holds
from spinney.model.errors import Refused
from spinney.model.jobs import Lease
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.model.states import State


class Works:
    """A batch whose objects are in work, and a node of which each step is a test's to take."""

    def __init__(self, service: Service, objects: int = 3, site: Site | None = None) -> None:
        (service.settings.profiles / "open.toml").write_text("collection = 'maps'\n")
        order = Submit(name="map.tif", profile="open", submitter="ann", kind=PayloadKind.FILE)
        self.service, self.site = service, site or Site(service.store, RealClock())
        path = service.settings.home / "map.tif"
        path.write_bytes(b"map")
        with path.open("rb") as source:
            self.bid = submit(service, source, order).bid
        self.read(objects)

    def read(self, objects: int) -> None:
        """Run the stage that makes a job for each object."""
        lease = self.site.claim_one(lanes={("ingest.batch", "processing")})
        self.site.start(lease)
        self.service.store.put_data(
            lease.job_id, lease.fence, "begun", '"2026-01-02T03:04:05+00:00"', lease.job_id
        )
        rows = [{"order": self._order(number)} for number in range(1, objects + 1)]
        self.objects = self.site.spawn_all(lease, submission("ingest.object", *rows, collection="maps"))
        self.site.pass_(lease)

    def settle(self) -> None:
        """Let the objects fail, then the batch report."""
        for _ in self.objects:
            self.site.fail(self.run())
        for _ in ("reporting", "sent"):
            self.site.pass_(self.run())

    def _order(self, number: int) -> dict[str, Any]:
        payload = Payload(kind=PayloadKind.FILE, url="http://example.org/a", name="a")
        return ObjectOrder(
            jid=orders.jid(self.bid, number), bid=self.bid, profile="open", submitter="ann", payload=payload
        ).model_dump(exclude_defaults=True)

    def run(self) -> Lease:
        lease = self.site.claim_one()
        self.site.start(lease)
        return lease

    @property
    def batch(self) -> Batch:
        return find_batch(self.service, self.bid)

    def listed(self, state: BatchState) -> list[str]:
        return [batch.bid for batch in batches(self.service, state=state)]


STOPS = {
    "collection": lambda service: Hold(collection="maps", reason="counting").run(service),
    "pause": lambda service: Pause(what="ingest", reason="counting").run(service),
    "type": lambda service: service.control.do(
        LayHold(scope=Scope.TYPE, name="ingest.object", reason="counting")
    ),
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_batch_that_is_stopped_in_its_middle_is_held_and_can_be_deleted(
    service: Service, stop: str
) -> None:
    works = Works(service)
    running = works.run()
    assert works.batch.state is BatchState.PROCESSING

    STOPS[stop](service)
    sweep_holds(service.control)

    assert (works.batch.state, works.batch.objects, works.batch.running) == (
        BatchState.HELD,
        {"held": 2, "running": 1},
        1,
    )
    assert (works.listed(BatchState.HELD), works.listed(BatchState.PROCESSING)) == ([works.bid], [])
    with pytest.raises(Refused, match="1 of its objects still run"):
        Delete(batch=works.bid).run(service)
    assert works.batch.state is BatchState.HELD
    works.site.pass_(running)
    assert (works.batch.state, works.batch.objects) == (BatchState.HELD, {"held": 3})

    assert Delete(batch=works.bid).run(service)["deleted"]["jobs"] == 4

    assert works.listed(BatchState.DELETED) == [works.bid]
    assert {service.store.job(job).state for job in works.objects} == {State.DELETED}
    for now in (False, True):
        with pytest.raises(Refused, match="deleted with its reports"):
            Report(batch=works.bid, now=now).run(service)


def test_a_batch_goes_on_when_its_collection_does(service: Service) -> None:
    works = Works(service)
    Hold(collection="maps", reason="counting").run(service)
    assert works.batch.state is BatchState.HELD
    Release(collection="maps").run(service)
    assert (works.batch.state, works.batch.objects) == (BatchState.PROCESSING, {"pending": 3})


def test_a_batch_of_which_one_object_is_held_goes_on_with_the_others_first(service: Service) -> None:
    works = Works(service, objects=2)
    works.site.record(works.run(), Outcome.HOLD, message="too large")
    assert (works.batch.state, works.batch.objects) == (BatchState.PROCESSING, {"held": 1, "pending": 1})
    works.site.fail(works.run())
    assert (works.batch.state, works.batch.objects) == (BatchState.HELD, {"held": 1, "failed": 1})


def submitted(service: Service, site: Site) -> tuple[str, Lease]:
    """Submit a batch that its profile holds, and begin the first attempt of its job."""
    path = service.settings.home / "map.tif"
    path.write_bytes(b"map")
    order = Submit(name="map.tif", profile="maps", submitter="ann", kind=PayloadKind.FILE)
    with path.open("rb") as source:
        bid = submit(service, source, order).bid
    lease = site.claim_one(lanes={("ingest.batch", "processing")})
    site.start(lease)
    return bid, lease


def test_a_batch_that_is_released_while_its_stage_is_about_to_hold_it_is_not_held(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(service.store, RealClock())
    bid, lease = submitted(service, site)
    looks = []

    def meanwhile(seconds: float) -> None:
        looks.append(seconds)
        site.record(lease, Outcome.HOLD, message="a look first")

    monkeypatch.setattr(holds, "sleep", meanwhile)

    Release(batch=bid).run(service)

    assert service.store.job(lease.job_id).state is State.PENDING
    assert len(looks) == 1


def test_a_release_does_not_wait_for_the_end_of_a_stage_that_has_begun_with_the_batch(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(service.store, RealClock())
    bid, lease = submitted(service, site)

    def meanwhile(_: float) -> None:
        service.store.put_data(
            lease.job_id, lease.fence, "begun", '"2026-01-02T03:04:05+00:00"', lease.job_id
        )

    monkeypatch.setattr(holds, "sleep", meanwhile)

    Release(batch=bid).run(service)

    assert service.store.job(lease.job_id).state is State.RUNNING


def test_the_message_of_a_batch_is_about_its_objects(service: Service) -> None:
    works = Works(service, objects=3)

    def message() -> str:
        messages = {Status(batch=works.bid).run(service)["message"], *(b["message"] for b in listed())}
        (same,) = messages
        return same

    def listed() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = Batches().run(service)["items"]
        return items

    assert message() == "waits for its objects"
    works.site.record(works.run(), Outcome.HOLD, message="too large")
    assert message() == "waits for its objects; 1 is held"
    held = next(job for job in works.objects if works.site.state(job) is State.HELD)
    works.site.cancel(held)
    for _ in range(2):
        works.site.fail(works.run())
    works.site.pass_(works.run(), result={"failed": 2})
    works.site.pass_(works.run())
    assert (works.batch.state, message()) == (BatchState.FAILED, "2 objects failed")


def test_a_batch_that_runs_again_as_a_whole_has_the_objects_of_its_last_run(service: Service) -> None:
    # Given a batch of two objects that failed, and an operator who has all of it run again from its first stage
    works = Works(service, objects=2)
    works.settle()
    before = works.objects
    works.site.rerun(works.batch.job.id)
    works.read(2)
    works.settle()

    # Then the jobs that the first run made are neither shown nor counted, nor requeued
    assert Status(batch=works.bid).run(service)["objects"] == {"failed": 2}
    listed = [item["job"] for item in Objects(batch=works.bid).run(service)["items"]]
    assert listed == works.objects
    assert Requeue(names=[works.bid], dry_run=True).run(service)["items"][0]["would_requeue"] == 2
    Requeue(names=[works.bid]).run(service)
    assert works.batch.objects == {"pending": 2}
    assert {service.store.job(job).state for job in before} == {State.FAILED}


def test_a_list_of_batches_counts_objects_and_warnings_in_one_look(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Works(service, objects=1)
    first.site.record(first.run(), Outcome.WARNING, message="no size")
    second = Works(service, objects=2, site=first.site)
    looks = []
    below = type(service.store).below
    monkeypatch.setattr(
        type(service.store),
        "below",
        lambda self, *ids, **more: looks.append(ids) or below(self, *ids, **more),
    )

    items = Batches().run(service)["items"]

    assert [(one["batch"], one["objects"], one["warnings"]) for one in items] == [
        (second.bid, {"pending": 2}, 0),
        (first.bid, {"pending": 1}, 1),
    ]
    assert len(looks) == 1
