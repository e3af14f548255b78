"""The nouns and rules of Spinney, free of I/O and of every other room.

``states``   the states of a job and the only table of lawful transitions
``outcomes`` what a stage may end with, and what the engine says in its place
``types``    job types, stages, queues: what a node registers
``jobs``     submissions, jobs, attempts, leases: what a store keeps and gives
``names``    what may be called how
``lineage``  the path of a job in its tree
``progress`` which stage is next

``errors``   the exceptions, each ending with what to do next
"""
