"""Holds: an operator's order, with a reason, that nothing new may start in what the hold covers.

``sql``       the rows of holds, and the sweep that gives jobs the state ``held`` and takes it away
``sweep``     the steps of that sweep
``preview``   how many jobs a hold would hold, and how many a release would let continue
``commands``  placing, releasing and previewing, and the sweep that follows
``cli``       the commands ``hold``, ``holds`` and ``release``
``page``      the list of holds with its forms

A hold is in force from the commit that places it: the claim itself checks
``spinney.store.sql.registry.hold_coverage``. The state ``held`` of the jobs only follows, in a sweep of
bounded steps that any process may take: the command that placed the hold, the leading node
(``spinney.node.services.holds``), and a server where no node leads. A crash between two steps leaves jobs
that are shown as pending and are not claimed all the same. Running jobs finish their stage; attempts that
were claimed and have not begun go back.

A job may be covered by several holds and continues only when none is left; after a release each held job is
placed anew, since it may have to wait for something else by then. A **wide** hold covers more than one job:
everything, a queue, a type, a collection, a submitter or a tree.

Specified by ``tests/contract/test_holds.py`` (the rules), ``tests/contract/test_holds_machine.py`` (holds at
random beside all other work), ``tests/store/test_hold_plans.py`` (the cost), ``tests/service/test_holds.py``
(rights, sweeps and previews), ``tests/node/test_holds.py`` (nodes at work), ``tests/cli/test_holds.py`` (the
commands) and ``tests/server/pages/test_operator_pages.py`` (the page).
"""
