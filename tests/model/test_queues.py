"""The settings of a queue travel as JSON and come back equal; what cannot be meant is refused with a sentence."""

import json
from typing import Any

import pytest

from spinney.model.errors import UsageError
from spinney.model.settings.queues import QueueSpec

REFUSED = {
    "a negative limit": lambda: QueueSpec(name="q", limit=-1),
    "an unknown order": lambda: QueueSpec(name="q", order="random"),
    "an unknown sharing": lambda: QueueSpec(name="q", sharing="fair"),
    "a turn without a quota": lambda: QueueSpec(name="q", turn=3),
    "a turn of none": lambda: QueueSpec(name="q", sharing="quota", turn=0),
    "a queue with a path": lambda: QueueSpec(name="a/b"),
    "a limit in words": lambda: QueueSpec(name="q", limit="2"),
    "half a slot": lambda: QueueSpec(name="q", limit=1.5),
    "a limit that is a flag": lambda: QueueSpec(name="q", limit=True),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_meant_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        REFUSED[what]()


@pytest.mark.parametrize(
    ("order", "sharing", "shared"),
    [
        ("default", None, "shares"),
        ("fifo", None, "none"),
        ("lifo", None, "none"),
        ("default", "none", "none"),
        ("default", "quota", "quota"),
        ("fifo", "shares", "shares"),
    ],
)
def test_fifo_and_lifo_queues_default_to_no_sharing(order: str, sharing: str | None, shared: str) -> None:
    assert QueueSpec(name="q", order=order, sharing=sharing).shared == shared


def test_a_queue_says_who_may_serve_it_and_a_pin_wins() -> None:
    queue = QueueSpec(name="q", pinned=("oak", "elm"), barred=("oak", "ash"))

    assert [node for node in ("oak", "elm", "ash", "yew") if queue.admits(node)] == ["oak", "elm"]
    assert [n for n in ("oak", "yew") if QueueSpec(name="q", barred=("oak",)).admits(n)] == ["yew"]


def test_a_queue_travels_as_json_with_what_is_said_of_it_alone() -> None:
    plain, rich = (
        QueueSpec(name="q", limit=3),
        QueueSpec(name="q", type="one", pinned=("oak",), barred=("elm",)),
    )

    for spec in (plain, rich):
        assert QueueSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert plain.to_json() == {"name": "q", "limit": 3, "order": "default", "sharing": None}


@pytest.mark.parametrize(
    "wrong",
    [{"pinned": "oak"}, {"pinned": ["oak"]}, {"barred": ("a b",)}, {"pinned": ("a", "a")}, {"type": "a b"}],
)
def test_nodes_and_types_of_a_queue_have_names(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        QueueSpec(name="q", **wrong)
