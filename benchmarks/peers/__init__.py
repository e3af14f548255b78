"""Spinney beside other job queues: ``make bench-peers``, or ``python -m benchmarks.peers`` with chosen peers and cases.

Every peer is a program in ``programs``, which speaks the same small protocol (``programs/peer_program.py``): prepare,
submit, work. The programs run in an environment of their own (``build/peers``), with the libraries that they are
written for; the runner only starts them, and reads the records that their jobs leave. What is measured, by ``cases``:

- bulk: submission of all jobs, as the peer's documentation says that many are submitted.
- drain: from the start of a job, after the first ones have warmed the worker up, until the last is recorded as done.
- start: an idle worker; from before a submission in another process to the first line of the job.
- fairness: 50 jobs of 5 ms behind 5,000 of another submission, with 8 slots, over the time of 50 alone.

All peers take their turn in each round, with a fresh store and fresh processes, and the median of the rounds counts.
"""
