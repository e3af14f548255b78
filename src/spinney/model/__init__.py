"""These are the data classes and rules that all of Spinney shares; they do no I/O and import no other package of it.

What a job is:

``states``    the states of a job and the only table of lawful transitions
``outcomes``  how an attempt may end, by itself or by the engine
``types``     job types and their stages: what a node registers
``jobs``      submissions, jobs, attempts, leases: what a store takes and returns
``submission``  a submission and its bounds, which workers load without the rest of ``jobs``
``lineage``   the path of a job in its tree
``attempts``  which stage is next, signals, causes of failures
``values``    values that check themselves: names, durations, times, limits

Who may do what, and what people set:

``access``     roles, and the limits within which a user has one
``rights``     accounts, who makes a change, which verbs a caller may use on a job, who may submit a type
``settings``   what operators set at run time: queues, capacities, holds, inboxes, retention, schedules,
               webhooks
``operators``  what operators order and read: bulk verbs, the audit, statistics, queues, locks
``bridges``    bridges to the databases of other systems, and their links

What is around a job:

``fleet``            nodes as operators see them, and the times by which they are judged
``homes``            where jobs have their folders, if folders are local
``subjects``         the line by which people tell a job from others of its type
``external``         external workers, which run stages over the API and are no nodes
``queue_selection``  which node may serve which queue
``trusted_clock``    whether a wall clock is trusted to delete what is old

``errors``  the exceptions, each ending with what to do next

The store, nodes, servers and commands exchange these values. Clocks and randomness are passed in, except where a secret
is made (``rights.accounts``). Times are integers in microseconds since 1970 UTC where a name ends in ``_us``, and
seconds where it ends in ``_s``. A value that a person, a file or a request gives is checked when the dataclass is made
(``__post_init__``), which raises a class of ``errors``; the few plain tuples of the hot path (``jobs.Lease``,
``jobs.Record``) check nothing.

Specified by ``tests/model`` (the rules one by one) and ``tests/contract/test_transitions.py`` (no store makes a
transition that the table lacks).
"""
