"""Fetching: what payload URLs weigh, and bringing them into a folder, whole and checked.

    estimate(urls, rules)              HEAD on every URL, many at once
    fetch_all(wanted, folder, rules)   GET, several at once, resumed after a break
    hosts_of(urls)                     which servers are asked, for a lock with a capacity a host

``http``, ``https`` and ``file`` (below configured roots), nothing else. Depositors write the URLs, so
each is taken as hostile: see `addresses` and `connections` for what is never reached.

Who writes what, in which order. Beside ``folder`` lies ``folder.fetching`` (``aside``), with what is
not whole yet, so that no name that a depositor chooses can meet a name of ours:

    <hash of the name>.part     the bytes that have come
    <hash of the name>.json     a mark: to which byte the part is on disk, its digests up to there, and
                                the validator (ETag or date) the rest may be asked for with
    fetched.jsonl               the journal: a line a file with its size and its own digests
    lock                        held by the one process that fetches

1. Bytes go to the part; every `Rules.mark_bytes`, every few seconds and at every break the part is
   synced, then its mark replaced in one rename.
2. When size and digest are right the journal gets its line, and the part is renamed to its name below
   ``folder``. So a name that stands is whole, unless the power went.
3. At the end files and folders are synced, each once, unless that is the caller's to do; and parts that
   nobody wants any more are removed.

What a crash leaves, and what the next call makes of it: a part without a mark is begun anew. A part
with a mark is read again up to the mark and must have the digests written there; the rest is asked for
by Range under If-Range. A name that stands is read again: it stays when it has the size and digest
that were given, or, where none was given, those the journal has for the same URL; else it is fetched
anew; so a file that lost its bytes with the power is never taken for the one that came. A line of the
journal that was torn, or whose file never got its name, is of no consequence.

``rules`` the rules, what is wanted, what came of it · ``urls`` what may be asked · ``addresses`` where a
connection may lead · ``connections`` sockets under these rules · ``http_client`` one question with its
redirects · ``response_headers`` reading headers · ``size_estimates`` · ``partial_files``, ``journal``,
``existing_files`` what is on disk · ``http_files``, ``local_files`` one try of one file · ``fetches`` all
files, all tries · ``parallel_tasks`` several at once.
"""

from spinney.apps.ingest.fetching.fetches import aside_of, fetch_all
from spinney.apps.ingest.fetching.rules import (
    Estimate,
    Fetched,
    FetchFailed,
    Rules,
    Stopped,
    Surroundings,
    Wanted,
)
from spinney.apps.ingest.fetching.size_estimates import estimate
from spinney.apps.ingest.fetching.urls import hosts_of

__all__ = [
    "Estimate",
    "FetchFailed",
    "Fetched",
    "Rules",
    "Stopped",
    "Surroundings",
    "Wanted",
    "aside_of",
    "estimate",
    "fetch_all",
    "hosts_of",
]
