"""Messages survive whatever a stream does to them."""

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.node.workers.wire import LIMIT_BYTES, Channel, Decoder, WireError, pack

MESSAGES = st.lists(
    st.dictionaries(st.text(max_size=5), st.integers(-(2**53), 2**53) | st.text(max_size=50) | st.none()),
    max_size=8,
)


@given(MESSAGES, st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_messages_come_out_as_they_went_in_however_the_stream_is_cut(messages, cuts):
    stream = b"".join(map(pack, messages))
    decoder, decoded, at = Decoder(), [], 0
    for n in range(len(stream) + 1):
        size = cuts[n % len(cuts)]
        decoded += decoder.feed(stream[at : at + size])
        at += size
    assert decoded == messages


def test_a_length_beyond_the_bound_is_refused_before_it_is_awaited():
    with pytest.raises(WireError, match="announced"):
        Decoder().feed((LIMIT_BYTES + 1).to_bytes(4, "big"))


def test_what_is_no_json_is_refused():
    with pytest.raises(WireError, match="no JSON"):
        Decoder().feed(b"\0\0\0\2{]")


def test_a_message_that_is_too_long_is_refused_with_what_to_do():
    with pytest.raises(WireError, match="job's folder"):
        pack("x" * LIMIT_BYTES)


def test_a_channel_reads_across_packets_and_tells_the_end():
    here, there = socket.socketpair()
    channel = Channel(there)
    sent = pack({"a": "x" * 300_000}) + pack({"b": 2})
    writer = threading.Thread(target=lambda: (here.sendall(sent), here.close()))
    writer.start()
    assert channel.receive() == {"a": "x" * 300_000}
    assert channel.receive() == {"b": 2}
    assert channel.receive() is None
    writer.join()


def test_reading_can_be_stopped_from_another_thread():
    here, there = socket.socketpair()
    channel = Channel(there)
    stopper = threading.Timer(0.05, channel.stop_reading)
    stopper.start()
    assert channel.receive() is None
    stopper.join()
    here.close()
