"""External stages: a party that is no node joins, claims, keeps alive and settles (docs/external.md)."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from spinney.answers import Born, Left, Length, Page, PartyShown, Printed, Taken
from spinney.client.calls import Call, do, get, path, said, verb
from spinney.model import durations
from spinney.model.durations import Duration, optional
from spinney.model.external import Claimed, Standing


class Ending(TypedDict, total=False):
    """What became of an attempt, beside its outcome."""

    result: Any
    message: str | None
    error: Mapping[str, str] | None
    """``type``, ``message``, ``traceback``."""
    retryable: bool
    code: int | None
    delay_s: Duration | None
    lane: bool
    lock: str | None


class ExternalVerbs:
    """``party`` is the key that joining gave; ``job`` and ``fence`` are those of a claimed attempt."""

    @verb
    def parties(self: None) -> Call[Page[PartyShown]]:
        """Those that are there."""
        return get("/external", Page[PartyShown])

    @verb
    def join(
        self: None, name: str, lanes: Sequence[tuple[str, str]], *, slots: int = 1, lease_s: Duration = 60.0
    ) -> Call[PartyShown]:
        """Come, to run these external stages: pairs of job type and stage."""
        stages = [{"type": type_, "stage": stage} for type_, stage in lanes]
        body = said(name=name, lanes=stages, slots=slots, lease_s=durations.seconds(lease_s, "lease_s"))
        return do("POST", "/external", PartyShown, body)

    @verb
    def leave(self: None, party: str) -> Call[Left]:
        """Go; what the party still has goes back."""
        return do("DELETE", path("/external/{}", party), Left)

    @verb
    def claim(self: None, party: str, *, seen: int, limit: int = 1) -> Call[Claimed]:
        """Attempts for the party's free slots; ``seen``: the highest fence of which it has ever heard."""
        return do("POST", path("/external/{}/claim", party), Claimed, said(seen=seen, limit=limit))

    @verb
    def alive(self: None, party: str, *, seen: int, fences: Sequence[int]) -> Call[Standing]:
        """Say on what the party works; what is to be cancelled, and what it has lost."""
        return do("POST", path("/external/{}/alive", party), Standing, said(seen=seen, fences=list(fences)))

    @verb
    def settle(
        self: None, party: str, job: int, fence: int, outcome: str, **how: Unpack[Ending]
    ) -> Call[None]:
        """Say what became of an attempt; may be said again. Raises StaleFence when it has lost its lease."""
        if "delay_s" in how:
            how["delay_s"] = optional(how["delay_s"], "delay_s")
        return do("POST", _attempt(party, job, fence, "settle"), None, {"outcome": outcome, **how})

    @verb
    def progress(
        self: None, party: str, job: int, fence: int, fraction: float, *, message: str | None = None
    ) -> Call[None]:
        """Show how far it is."""
        return do(
            "POST", _attempt(party, job, fence, "progress"), None, said(fraction=fraction, message=message)
        )

    @verb
    def keep_output(
        self: None, party: str, job: int, fence: int, text: str, *, stream: str = "stdout"
    ) -> Call[Printed]:
        """Append to what it has printed."""
        return do("POST", _attempt(party, job, fence, "output"), Printed, said(stream=stream, text=text))

    @verb
    def put_data(
        self: None, party: str, job: int, fence: int, name: str, value: Any, *, of: str = "job"
    ) -> Call[None]:
        """Set an entry of the data of the job, its parent or its root; None removes it."""
        return do("PUT", _attempt(party, job, fence, "data"), None, {"name": name, "value": value, "of": of})

    @verb
    def append_data(
        self: None, party: str, job: int, fence: int, name: str, value: Any, *, of: str = "job"
    ) -> Call[Length]:
        """Append to the list of that name."""
        return do(
            "POST", _attempt(party, job, fence, "data"), Length, {"name": name, "value": value, "of": of}
        )

    @verb
    def spawn(self: None, party: str, job: int, fence: int, jobs: Sequence[Mapping[str, Any]]) -> Call[Born]:
        """Make subjobs, each as a line of a submission."""
        return do("POST", _attempt(party, job, fence, "spawn"), Born, {"jobs": list(jobs)})

    @verb
    def take_lock(
        self: None, party: str, job: int, fence: int, name: str, *, until: str = "attempt", amount: int = 1
    ) -> Call[Taken]:
        """Take a lock if it is to be had; never waits."""
        return do(
            "POST", _attempt(party, job, fence, "lock"), Taken, said(name=name, until=until, amount=amount)
        )


def _attempt(party: str, job: int, fence: int, what: str) -> str:
    return path("/external/{}/attempts/{}/{}/{}", party, job, fence, what)
