"""The data classes and rules of Spinney. They do no I/O and import no other package of Spinney.

``states``   the states of a job and the only table of lawful transitions
``outcomes`` how an attempt may end, by itself or by the engine
``types``    job types, stages, queues: what a node registers
``jobs``     submissions, jobs, attempts, leases: what a store takes and returns
``values``   values that check themselves: names, durations, limits
``lineage``  the path of a job in its tree
``attempts`` which stage is next, signals, causes of failures

``errors``   the exceptions, each ending with what to do next
"""
