"""A typed client of the API: the same methods, waited for or awaited.

    from spinney.client import AsyncClient, Client
    from spinney.operations import ExplainJob, SubmitJob

    with Client("https://spinney.example.org", token="spn_…") as spinney:
        job = spinney.do(SubmitJob(type="compress", params={"file": "/data/a.csv", "into": "/data"}))
        print(spinney.do(ExplainJob(job=job.id)).sentence)

    async with AsyncClient("unix:/srv/spinney/spinney.db.run/server.sock") as spinney:
        async for event in spinney.watch(f"job:{job.id}"):
            ...

``clients``        ``Client`` and ``AsyncClient``, which send calls and read streams
``http_messages``  the requests of both clients, and what they make of answers
``calls``          a call as a value: the request, and how its answer is decoded
``verbs``          the methods of both clients for what is not a command: files, output, the caller
``streaming``      answers that come line by line: of a command that tells how far it is, and server-sent events
``errors``         errors of a server as the exceptions of a store

What a command asks of the server follows from its definition (``calls``), so a client needs no code for it; ``verbs``
has the rest. Only fields that were set are sent, so that the defaults of the server's version apply, and fields of an
answer that only a newer server knows are ignored.

What the server refuses is raised as the exception that the command raises on a store (``errors``), so that code need
not know on which side of the wire it stands. ``ServerUnavailable`` says that nothing is known about the request:
``Call.repeatable`` tells whether it may be sent again. A stream (``watch``) continues behind its last event by itself;
an answer that broke off is never taken for the whole (``IncompleteResponse``).

Specified by ``tests/client/test_clients.py`` (both clients, with a server and a node), ``tests/client/test_verbs.py``
(a call for each operation of the API), ``tests/client/test_streaming.py`` (event streams),
``tests/client/test_incomplete_responses.py`` (servers that die in the middle) and
``tests/cli/remote/test_server_unavailable.py`` (waiting for a server).
"""

from spinney.client.clients import AsyncClient, Client
from spinney.client.streaming import Event

__all__ = ["AsyncClient", "Client", "Event"]
