"""``spinney ingest`` as a consumer of Merritt's ingest queue in ZooKeeper; ``docs/merritt.md`` has the rules.

``orders`` turns a job there into an object here · ``batches`` turns submissions into jobs, and reports · ``progress``
writes what has become of a job · ``ownership`` knows which jobs are ours, by their ``marks`` · ``consumer`` is the
bridge's side · ``cli`` has the commands."""
