"""External workers: programs of others that claim and run stages over the API.

``sql``           external workers as rows of ``nodes`` with an owner, and their leases
``service``       join, claim, heartbeat, settle and leave, in the name of an account
``claim_rights``  which job types and queues an account may claim, and what its subjobs may name
``settlements``   the texts of a settlement: bounded, without secrets and NUL
``commands``      what an external worker asks for, as commands
``api``           the route for output, which is kept where a node would keep it

To the rest of the store an external worker is a node: it is given leases by the rules of any claim, and fences refuse
what a late one writes. It differs in that nobody supervises it. Each request names the highest fence that the worker
has seen and, in a heartbeat, the attempts on which it works, so that a lost answer or a restarted worker leaves no
lease behind. A worker that is silent for longer than its lease period has its leases taken back by the leading node or
by a server, whichever notices first (``spinney.store.external_timeouts``).

The right to claim (``Rights.external``) names job types and is independent of the role. A store with local folders
admits no external workers.

Specified by ``tests/contract/test_external.py`` (what the store keeps and what a claim gives),
``tests/service/test_external.py`` (the verbs and their rights), ``tests/server/api/test_external.py`` (a worker over
the API), ``tests/node/test_external.py`` (beside real nodes) and ``tests/server/test_maintenance.py`` (silence where no
node is there).
"""
