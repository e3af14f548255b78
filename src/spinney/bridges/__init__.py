"""Bridges let Spinney work with the database or the queue of another system, and serve that system's own clients.

- ``disbatch``: execution nodes and the command interface of Disbatch 4, on its MongoDB database.
- ``merritt``: a library of the queue in ZooKeeper that Merritt's services share; it needs nothing else of Spinney."""
