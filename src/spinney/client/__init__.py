"""A typed client of the API: the same verbs, waited for or awaited.

    from spinney.client import AsyncClient, Client
    from spinney.features.explain.commands import ExplainJob

    with Client("https://spinney.example.org", token="spn_…") as spinney:
        job = spinney.submit("compress", {"file": "/data/a.csv", "into": "/data"})
        print(spinney.do(ExplainJob(job=job.id)).sentence)

    async with AsyncClient("unix:/srv/spinney/spinney.db.run/server.sock") as spinney:
        async for event in spinney.watch(f"job:{job.id}"):
            ...

A verb is written down once (``verbs``), as the request that it makes and what its answer means (``calls``); a client
(``clients``) only sends it. What the server refuses is raised as the same exception that ``spinney.control`` would
raise (``refusals``), so that code need not know on which side of the wire it stands.
"""

from spinney.client.clients import AsyncClient, Client
from spinney.client.streaming import Event

__all__ = ["AsyncClient", "Client", "Event"]
