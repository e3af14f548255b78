"""The use cases that the service was drawn up for, from manifest to report, with its node killed between any records.

Each in a short form, in which a node dies here and there; SPINNEY_LONG=1 has it die at every point, one at a time.
"""

from collections import Counter
from pathlib import Path

import pytest

from longer import long_alone
from spinney.apps.ingest.application import STAGES
from spinney.model.states import State

from ..storage.given import at_rest
from .service import Service

BATCH = ("processing", "reporting", "told")
SIDES = ("begun", "ended")
POINTS = [
    *(f"ingest.batch.processing.{side}" for side in SIDES),
    *(f"ingest.object.{stage}.{side}" for stage in STAGES for side in SIDES),
    *(f"ingest.batch.{stage}.{side}" for stage in BATCH[1:] for side in SIDES),
    *(f"reports.mail.sending.{side}" for side in SIDES),
]
AGAIN = [point for point in POINTS if not point.startswith(("ingest.batch.processing", "ingest.object.estimating", "ingest.object.provisioning"))]  # fmt: skip # noqa: E501
"""The points that a batch comes to when it is mended."""


def deaths(points: list[str], *short: str) -> pytest.MarkDecorator:
    """``short``: where it dies in the short form, all in one run."""
    each = [pytest.param((point,), id=point, marks=long_alone) for point in points]
    return pytest.mark.parametrize("dies_at", [pytest.param(short, id="here and there"), *each])


@long_alone
@deaths(POINTS, "ingest.object.processing.ended", "ingest.batch.reporting.ended")
def test_a_batch_completes(service: Service, dies_at: tuple[str, ...]) -> None:
    # Given a manifest of three objects
    manifest = service.manifest_of_three()
    service.dies_at(*dies_at)

    # When it is submitted, and the node dies on the way
    batch = service.submit(manifest)
    ended = service.settle(batch, mails=1)

    # Then everything is in the archive, each stage is recorded once, and one report says so
    assert ended.state is State.COMPLETED
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert service.recorded(batch) == Counter(
        dict.fromkeys((("object", stage) for stage in STAGES), 3) | dict.fromkeys((("batch", s) for s in BATCH), 1)
    )
    assert service.archived() == service.contents
    assert (service.report(batch, 1)["state"], service.reports(batch)) == ("completed", ["0001"])
    (subject,) = service.subjects()
    assert subject.endswith("completed (3 objects)")
    assert all_is_well(service, batch)


@long_alone
@deaths(POINTS, "ingest.object.downloading.ended", "reports.mail.sending.ended")
def test_a_batch_with_an_object_that_fails(service: Service, dies_at: tuple[str, ...]) -> None:
    # Given a manifest of three objects, and a wrong byte in a file of the first
    manifest = service.manifest_of_three()
    service.damage("letters")
    service.dies_at(*dies_at)

    # When it is submitted
    batch = service.submit(manifest)
    ended = service.settle(batch, mails=1)

    # Then the batch fails, the report names object, stage, file and cause, and the others are in the archive
    assert ended.state is State.FAILED
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert {name: job.state for name, job in service.objects(batch).items()} == {
        "letters": State.FAILED, "maps": State.COMPLETED, "scans": State.COMPLETED,
    }  # fmt: skip
    told = service.report(batch, 1)
    (failed,) = told["failed"]
    assert (told["state"], failed["title"], failed["stage"], failed["passed"]) == (
        "failed", "Letters", "downloading", "provisioning",
    )  # fmt: skip
    assert "'a.txt' could not be fetched" in failed["message"]
    assert "sha256" in failed["message"]
    assert service.archived() == {name: service.contents[name] for name in ("maps", "scans")}
    assert service.recorded(batch)["batch", "reporting"] == 1
    (subject,) = service.subjects()
    assert subject.endswith("1 failed (3 objects)")
    assert all_is_well(service, batch)


@deaths(AGAIN, "ingest.object.recording.ended")
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
    ended = service.settle(batch, mails=2)

    # Then it goes on where it had failed, and the batch tells what has changed
    assert ended.state is State.COMPLETED
    assert service.starts == 1 + len(dies_at)
    assert not list(service.deaths.iterdir())
    assert service.recorded(batch) - before == Counter(
        dict.fromkeys((("object", stage) for stage in STAGES[2:]), 1)
        | dict.fromkeys((("batch", stage) for stage in BATCH[1:]), 1)
    )
    assert service.archived() == service.contents
    told = service.report(batch, 2)
    assert service.reports(batch) == ["0001", "0002"]
    assert (told["state"], told["failed"], told["changes"]["mended"]) == ("completed", [], ["letters"])
    first, second = service.subjects()
    assert first.endswith("1 failed (3 objects)")
    assert second.endswith("update 1: completed (3 objects)")
    assert all_is_well(service, batch)


def all_is_well(service: Service, batch: int) -> bool:
    """No stage ran twice unasked; ocfl-py finds nothing wrong with the archive; nothing is left over anywhere."""
    incoming: list[Path] = list(service.settings.incoming.iterdir())
    assert (service.faults(batch), incoming) == ([], [])
    assert service.complaints() == []
    return at_rest(service.archive)
