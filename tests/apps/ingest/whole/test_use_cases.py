"""The use cases that the service was drawn up for, from manifest to report, with its node killed between any records.

Each in a short form, on databases and an archive of one kind, in which a node dies here and there; SPINNEY_LONG=1 has
it die at every point, one at a time, and on every kind.
"""

from collections import Counter

import pytest

from long_tests import LONG, long_alone
from spinney.apps.ingest.application import STAGES

from ..places import ALL, FAR, NEAR, Kinds
from ..storage.judge import at_rest
from .service import Service

BATCH = ("processing", "reporting", "sent")
SIDES = ("begun", "ended")
POINTS = [
    *(f"ingest.batch.processing.{side}" for side in SIDES),
    *(f"ingest.object.{stage}.{side}" for stage in STAGES for side in SIDES),
    *(f"ingest.batch.{stage}.{side}" for stage in BATCH[1:] for side in SIDES),
    *(f"reports.mail.sending.{side}" for side in SIDES),
]
AGAIN = [
    point
    for point in POINTS
    if not point.startswith(
        ("ingest.batch.processing", "ingest.object.estimating", "ingest.object.provisioning")
    )
]
"""The points that a batch comes to when it is mended."""


def deaths(points: list[str], short: Kinds, dies: tuple[str, ...], *together: str) -> pytest.MarkDecorator:
    """``short``, ``dies``: where it runs and where it dies in the short form; ``together``: where in one run of the
    long form, which has each of the ``points`` in a run of its own besides."""
    cases = [(kinds, together if LONG else dies, "here and there", kinds == short) for kinds in ALL]
    cases += [(kinds, (point,), point, False) for kinds in (NEAR, FAR) for point in points]
    return pytest.mark.parametrize(
        ("kinds", "dies_at"),
        [
            pytest.param(kinds, dies_at, id=f"{'-'.join(kinds)}-{name}", marks=[] if is_short else long_alone)
            for kinds, dies_at, name, is_short in cases
        ],
    )


@deaths(POINTS, NEAR, (), "ingest.object.processing.ended", "ingest.batch.reporting.ended")
def test_a_batch_completes(service: Service, dies_at: tuple[str, ...]) -> None:
    # Given a manifest of three objects
    manifest = service.manifest_of_three()
    service.dies_at(*dies_at)

    # When it is submitted, and the node dies on the way
    batch = service.submit(manifest)
    state = service.settle(batch, mails=1)

    # Then everything is in the archive, each stage is recorded once, and one report says so
    assert state == "completed"
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert service.recorded(batch) == Counter(
        dict.fromkeys((("object", stage) for stage in STAGES), 3)
        | dict.fromkeys((("batch", s) for s in BATCH), 1)
    )
    assert service.archived() == service.contents
    (report,) = service.reports(batch)
    assert (report["state"], report["totals"]["completed"]) == ("completed", 3)
    (subject,) = service.subjects()
    assert subject.endswith("completed (3 objects)")
    assert all_is_well(service, batch)


@pytest.mark.parametrize("kinds", [NEAR], ids="-".join)
@pytest.mark.parametrize(
    "stage", [pytest.param(name, marks=[] if name == "provisioning" else long_alone) for name in STAGES]
)
def test_a_worker_that_is_killed_once_fails_no_object(service: Service, stage: str) -> None:
    # Given a worker that is killed once, in this stage of an object
    service.dies_at(f"ingest.object.{stage}.killed")

    # When a batch is submitted
    batch = service.submit(service.manifest_of_three())
    state = service.settle(batch, mails=1)

    # Then the stage is tried again, and all objects complete
    assert state == "completed", service.objects(batch)
    assert not list(service.deaths.iterdir())
    assert service.starts == 1
    assert service.archived() == service.contents
    assert all_is_well(service, batch)


@deaths(
    POINTS,
    FAR,
    ("ingest.object.processing.ended",),
    "ingest.object.downloading.ended",
    "reports.mail.sending.ended",
)
def test_a_batch_with_an_object_that_fails(service: Service, dies_at: tuple[str, ...]) -> None:
    # Given a manifest of three objects, and a wrong byte in a file of the first
    manifest = service.manifest_of_three()
    service.damage("letters")
    service.dies_at(*dies_at)

    # When it is submitted
    batch = service.submit(manifest)
    state = service.settle(batch, mails=1)

    # Then the batch fails, the report names object, stage, file and cause, and the others are in the archive
    assert state == "failed"
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert {name: (entry["state"], entry["stage"]) for name, entry in service.objects(batch).items()} == {
        "letters": ("failed", "downloading"),
        "maps": ("completed", None),
        "scans": ("completed", None),
    }
    (report,) = service.reports(batch)
    (failed,) = report["failed"]
    assert (report["state"], failed["title"], failed["stage"], failed["passed"]) == (
        "failed",
        "Letters",
        "downloading",
        "provisioning",
    )
    assert "'a.txt' could not be fetched" in failed["message"]
    assert "sha256" in failed["message"]
    assert service.archived() == {name: service.contents[name] for name in ("maps", "scans")}
    assert service.recorded(batch)["batch", "reporting"] == 1
    (subject,) = service.subjects()
    assert subject.endswith("1 failed (3 objects)")
    assert all_is_well(service, batch)


@deaths(AGAIN, NEAR, ("ingest.object.recording.ended",), "ingest.object.recording.ended")
def test_a_failed_object_is_requeued_and_the_batch_reports_an_update(
    service: Service, dies_at: tuple[str, ...]
) -> None:
    # Given a batch that has failed because of one object
    manifest = service.manifest_of_three()
    service.damage("letters")
    batch = service.submit(manifest)
    service.settle(batch, mails=1)
    before = service.recorded(batch)

    # When the file is mended and the object requeued
    service.mend("letters")
    service.dies_at(*dies_at)
    service.requeue(batch)
    state = service.settle(batch, mails=2)

    # Then it goes on where it had failed, and the batch tells what has changed
    assert state == "completed"
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert service.recorded(batch) - before == Counter(
        dict.fromkeys((("object", stage) for stage in STAGES[2:]), 1)
        | dict.fromkeys((("batch", stage) for stage in BATCH[1:]), 1)
    )
    assert service.archived() == service.contents
    before_it, update = service.reports(batch)
    assert before_it["state"] == "failed"
    assert (update["state"], update["failed"], update["changes"]["mended"]) == ("completed", [], ["letters"])
    first, second = service.subjects()
    assert first.endswith("1 failed (3 objects)")
    assert second.endswith("update 1: completed (3 objects)")
    assert all_is_well(service, batch)


def all_is_well(service: Service, batch: str) -> bool:
    """No stage ran twice unasked; the doctor of the store finds nothing, nor does ocfl-py in the archive; nothing is
    left over anywhere."""
    assert (service.faults(batch), list(service.settings.incoming.iterdir())) == ([], [])
    service.shell.ok("doctor", "--deep")
    return at_rest(service.bed.fetch())
