"""Server-sent events, line by line."""

import pytest

from spinney.client.streaming import Event, EventParser, lines
from spinney.model.errors import Forbidden


def test_given_the_event_that_ends_a_stream_then_what_it_says_is_raised() -> None:
    events = EventParser()
    parsed = [event for line in ("id: a.1", "event: jobs", "data: []", "") for event in events.feed(line)]
    assert parsed == [Event(topic="jobs", data=[], id="a.1")]

    last = (
        '{"type": "urn:spinney:problem:forbidden", "title": "No", "status": 403, "detail": "ann is disabled"}'
    )
    for line in ("id:", "event: end", f"data: {last}"):
        assert list(events.feed(line)) == []
    with pytest.raises(Forbidden, match="ann is disabled"):
        list(events.feed(""))


def test_a_line_ends_at_a_line_feed_and_at_no_other_break_of_unicode() -> None:
    text = 'data: "a\u2028b\u0085c"\r\n\ndata: 1'.encode()

    for size in (1, 7, len(text)):
        chunks = (text[at : at + size] for at in range(0, len(text), size))
        assert list(lines(chunks)) == ['data: "a\u2028b\u0085c"', "", "data: 1"]
