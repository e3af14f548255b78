"""How long settled jobs are kept, by type and state, and the walk that finds those whose time is over.

``sql``       the rules, and one bounded step of the walk
``sweep``     a whole walk on demand, for ``keep --sweep``
``commands``  the rules as commands
``cli``       the command ``keep``
``page``      the page of rules

The leading node walks once an hour unless its settings say otherwise (``spinney.node.services.retention``). The rule
for the job at the top of a tree decides for the whole tree, which stays as long as any job in it is open. No index has
the time at which a job settled, because settling would have to write it, so a walk reads all jobs by id, a window at a
time; its position is kept nowhere, and a walk that was interrupted begins again.

What is found is removed by ``spinney.store.sql.transitions.removal``: rows first, with a note of their folders, then
the folders. Without a rule jobs are kept for ever.

Specified by ``tests/contract/test_retention.py`` (what is removed and what stays), ``tests/service/test_retention.py``
(rules and walks of a caller), ``tests/node/test_retention.py`` (a node at work), ``tests/cli/test_retention.py`` (the
command) and ``tests/server/pages/test_node_and_retention.py`` (the page).
"""
