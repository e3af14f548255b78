"""Bridges to the databases of other systems, as operators see them: who runs each, how far behind it is, its links.

``sql``       the rows of bridges and links; each bridge writes only its own
``commands``  the list of bridges, and forgetting one that no longer runs
``cli``       the commands ``bridges`` and ``bridge``
``page``      the page of bridges

The bridges themselves are processes of their own (``spinney.bridges``, docs/bridges.md). A process takes the name of
its bridge in the store; the process that had the name before sees that at its next look, and ends. A link joins an
entry of the other system, by the claim that the bridge wrote there, to a job here; it exists before the job, so that a
crash between the two leaves no job without a link.

A bridge counts as at work until it has not reported for ``AT_WORK_S``; only after that can it be forgotten.

Specified by ``tests/contract/test_bridges.py`` (links and reports), ``tests/server/pages/test_bridges.py`` (the page,
and the figures for Prometheus) and ``tests/bridges`` (the bridges that use them).
"""
