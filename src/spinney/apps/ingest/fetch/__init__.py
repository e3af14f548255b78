"""This package estimates the sizes of payload URLs, and downloads them into a folder, whole and checked.

    estimate(urls, rules)              HEAD on every URL, many at once
    fetch_all(files, folder, rules)    GET, several at once, resumed after a break
    forget(folder)                     have the next call fetch anew what has no digest
    hosts_of(urls)                     the servers of URLs, for a lock with a capacity for each host

Only ``http``, ``https`` and ``file`` (below configured roots) are supported. Depositors write the URLs, so
each is treated as hostile: see `urls` and `connections` for the addresses that are never reached.

Who writes what, in which order. Beside ``folder`` is ``folder.fetching`` (``aside``), with incomplete
files, so that no name that a depositor chooses can clash with a name of ours:

    <hash of the name>.part     the bytes received so far
    <hash of the name>.json     a mark: the number of bytes of the part that are on disk, its digests up to there,
                                and the validator (ETag or date) with which the rest can be requested
    fetched.jsonl               the journal: a line for each file with its size and digests
    lock                        held by the one process that fetches

1. Bytes are written to the part; every `Rules.mark_bytes`, every few seconds and at every break the part is
   synced, then its mark is replaced by a rename.
2. When size and digest are right the journal gets its line, and the part is renamed to its name below
   ``folder``. So a file with its final name is whole, except after a power cut.
3. At the end files and folders are synced, each once, unless the caller does that; and parts that
   are no longer needed are removed.

What a crash leaves, and how the next call continues: a part without a mark is fetched again from the beginning.
A part with a mark is read again up to the mark and must have the recorded digests; the rest is requested by
Range with If-Range. A file with its final name is read again: it is kept when it has the given size and digest,
or, where none was given, those in the journal for the same URL; otherwise it is fetched again. So a file that
lost content in a power cut is never taken for the one that was fetched. An incomplete line of the journal, or
one whose file never got its name, has no effect.

``fetches``           all files of a call, each tried several times
``downloads``         one try of one file, resumed where the last one broke off
``size_estimates``    the sizes of URLs, before anything is fetched
``rules``             limits, the files to fetch, results and errors
``urls``              which URLs are allowed, and how they are shown
``http_client``       one request with its redirects, each of which is checked
``connections``       sockets to addresses that were checked, closed when they are too slow
``response_headers``  the rules of RFC 9110 for the headers of answers
``partial_files``     a file to fetch, whose size and digest are compared early, and its part with its mark
``journal``           which files were fetched, for files whose digest nobody has given
``parallel_tasks``    several tasks at once, with callbacks in the caller's thread
``errors``            the errors of one try

Specified by ``tests/apps/ingest/fetch``.
"""

from spinney.apps.ingest.fetch.fetches import aside_of as aside_of
from spinney.apps.ingest.fetch.fetches import fetch_all as fetch_all
from spinney.apps.ingest.fetch.fetches import forget as forget
from spinney.apps.ingest.fetch.rules import Estimate as Estimate
from spinney.apps.ingest.fetch.rules import FetchFailed as FetchFailed
from spinney.apps.ingest.fetch.rules import RemoteFile as RemoteFile
from spinney.apps.ingest.fetch.rules import Rules as Rules
from spinney.apps.ingest.fetch.rules import Stopped as Stopped
from spinney.apps.ingest.fetch.size_estimates import estimate as estimate
from spinney.apps.ingest.fetch.urls import hosts_of as hosts_of
