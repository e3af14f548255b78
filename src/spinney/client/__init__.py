"""A typed client of the API: the same methods, waited for or awaited.

    from spinney.client import AsyncClient, Client
    from spinney.features.explain.commands import ExplainJob
    from spinney.features.submission.commands import SubmitJob

    with Client("https://spinney.example.org", token="spn_…") as spinney:
        job = spinney.do(SubmitJob(type="compress", params={"file": "/data/a.csv", "into": "/data"}))
        print(spinney.do(ExplainJob(job=job.id)).sentence)

    async with AsyncClient("unix:/srv/spinney/spinney.db.run/server.sock") as spinney:
        async for event in spinney.watch(f"job:{job.id}"):
            ...

What a command asks of the server follows from its definition (``calls``); what is not a command is a method
(``verbs``). A client (``clients``) only sends it. What the server refuses is raised as the
exception that the command raises on a store (``errors``), so that code need not know on which side of the wire it
stands.
"""

from spinney.client.clients import AsyncClient, Client
from spinney.client.streaming import Event

__all__ = ["AsyncClient", "Client", "Event"]
