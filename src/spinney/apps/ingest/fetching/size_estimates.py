"""What payloads weigh, before any is fetched."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spinney.apps.ingest.fetching import parallel_tasks, response_headers, urls
from spinney.apps.ingest.fetching.errors import Trouble
from spinney.apps.ingest.fetching.local_files import size_of
from spinney.apps.ingest.fetching.rules import Estimate, FetchFailed, Rules, Surroundings
from spinney.apps.ingest.files.paths import NotAdmitted

if TYPE_CHECKING:
    from spinney.apps.ingest.fetching.http_client import Asker

TRIES = 2
"""A connection kept alive may close just as it is used again; more patience is the download's."""

_NO_HEAD = frozenset({405, 501})


def estimate(
    wanted: Sequence[str],
    rules: Rules,
    *,
    at_once: int = 16,
    stopped: Callable[[], bool] = lambda: False,
    answered: Callable[[str], None] = lambda host: None,
    unasked: frozenset[str] = frozenset(),
    given: Surroundings | None = None,
) -> list[Estimate]:
    """The size of each URL by HEAD (``file:`` by the file system), in the order given.

    A problem with one stops no other, and is a warning: only fetching shows what can be had. (A URL
    signed for GET answers HEAD with 403.) But a host that is silent ends the call, for all that it has would be waited
    for in vain; of those in ``unasked`` the sizes are not known. ``answered``: as in ``fetch_all``. Raises FetchFailed,
    Stopped.
    """
    from spinney.apps.ingest.fetching.http_client import Asker  # with httpx, which is slow to load

    halt = threading.Event()
    rules = replace(rules, avoided=rules.avoided | unasked)
    asker = Asker(rules, halt, given or Surroundings(), at_once=at_once, answered=answered)

    def one(url: str, _heard: Callable[[int], None]) -> Estimate:
        try:
            return _estimated(asker, url, rules)
        except Trouble as trouble:
            if trouble.host in unasked:
                return Estimate(url=url, problem=f"{urls.shown_text(url)}: {trouble.reason}")
            shown = urls.shown_text(url)
            raise FetchFailed(shown, trouble.reason, True, name=shown, host=trouble.host) from None

    try:
        return parallel_tasks.together(
            wanted, one, at_once=at_once, halt=halt, progress=lambda _: None, stopped=stopped
        )
    finally:
        asker.close()


def _estimated(asker: "Asker", url: str, rules: Rules) -> Estimate:
    """Raises Trouble for silence."""
    try:
        parsed = urls.admitted(url)
        if parsed.scheme == "file":
            root, path = urls.beneath(parsed, rules.file_roots)
            return Estimate(url=url, size_bytes=size_of(root, path))
        return Estimate(url=url, size_bytes=_asked(asker, url, rules))
    except NotAdmitted as error:
        return Estimate(url=url, problem=str(error))
    except Trouble as trouble:
        if trouble.silent:
            raise
        return Estimate(url=url, problem=f"{urls.shown_text(url)}: {trouble.reason}")
    except OSError as error:
        return Estimate(
            url=url, problem=f"{urls.shown_text(url)} cannot be read ({error.strerror}); mend that"
        )


def _asked(asker: "Asker", url: str, rules: Rules) -> int | None:
    from spinney.apps.ingest.fetching.http_client import refused

    for tries_left in reversed(range(TRIES)):
        try:
            with asker.ask("HEAD", url, {}) as answer:
                if answer.status in _NO_HEAD:
                    return None
                if answer.status != 200:
                    raise refused(answer, rules)
                if response_headers.encoding_of(answer.headers):
                    return None
                return response_headers.length_of(answer.headers)
        except Trouble as trouble:
            if not (tries_left and trouble.retryable) or trouble.silent:
                raise
    raise AssertionError("the last try returns or raises")
