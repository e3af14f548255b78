"""The application and its two job types; their stages are in ``batch`` and ``stages``."""

from spinney import Spinney

app = Spinney()
queue = app.queue("ingest")

batches = app.pipeline(
    "ingest.batch",
    queue=queue,
    children="settled",
    description="Deposit a folder or a manifest: an object a top-level entry, and a report",
)
objects = app.pipeline("ingest.object", queue=queue, description="Deposit one object as a bag")
