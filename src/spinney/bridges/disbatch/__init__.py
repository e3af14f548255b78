"""The bridge to Disbatch 4: Spinney works as its execution nodes and as its command interface, on its own database.

The truth about tasks stays in the MongoDB database that nodes of the releases 4.0 to 4.4 may use at the same time.

- ``database``: the connection, the collections with their indexes, and the status codes of tasks.
- ``interface``: the REST API and the page of the command interface."""
