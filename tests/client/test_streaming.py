"""Server-sent events, line by line."""

import pytest

from spinney.client.streaming import Event, EventParser
from spinney.model.errors import Forbidden


def test_given_the_event_that_ends_a_stream_then_what_it_says_is_raised() -> None:
    lines = EventParser()
    told = [event for line in ("id: a.1", "event: jobs", "data: []", "") for event in lines.feed(line)]
    assert told == [Event(topic="jobs", data=[], id="a.1")]

    last = (
        '{"type": "urn:spinney:problem:forbidden", "title": "No", "status": 403, "detail": "ann is disabled"}'
    )
    for line in ("id:", "event: end", f"data: {last}"):
        assert list(lines.feed(line)) == []
    with pytest.raises(Forbidden, match="ann is disabled"):
        list(lines.feed(""))
