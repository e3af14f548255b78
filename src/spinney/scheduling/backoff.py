"""How long a failed stage waits before its next attempt."""

from spinney.model.types import Backoff


def delay_s(backoff: Backoff, attempt: int, draw: float) -> float:
    """Return the seconds to wait after the ``attempt``-th failure (from 1).

    ``draw`` in 0..1 picks the point within the jittered part: the delay lies between
    ``(1 - jitter)`` times and once the capped exponential value, so it never exceeds the cap.
    """
    exponent = min(attempt - 1, 1000)
    try:
        raw = backoff.base_s * backoff.factor**exponent
    except OverflowError:
        raw = backoff.cap_s
    capped = min(raw, backoff.cap_s)
    return capped * (1 - backoff.jitter * draw)
