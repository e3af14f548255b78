"""Small deposits go first."""

import pytest

from spinney.apps.ingest import app
from spinney.apps.ingest.deposits import priorities


@pytest.mark.parametrize(
    ("objects", "priority"),
    [
        (0, 5),
        (1, 5),
        (2, 11),
        (10, 28),
        (100, 51),
        (1000, 74),
        (10_000, 97),
        (12_088, 98),
        (12_089, 99),
        (10**9, 99),
    ],
)
def test_by_the_number_of_objects(objects: int, priority: int) -> None:
    assert priorities.of_batch(objects) == priority


@pytest.mark.parametrize(
    ("in_batch", "size_bytes", "priority"),
    [(5, 0, 5), (5, 10**9, 5), (5, 10**10, 10), (5, 10**12, 20), (97, 10**12, 99), (0, 2**63 - 1, 49)],
)
def test_heavy_objects_go_further_back(in_batch: int, size_bytes: int, priority: int) -> None:
    assert priorities.of_object(in_batch, size_bytes) == priority


def test_what_is_waited_for_goes_ahead_of_the_objects_of_any_batch() -> None:
    for name in ("ingest.batch", "ingest.access", "reports.mail", "reports.webhook"):
        assert app.types[name].spec.priority < priorities.of_batch(1), name
