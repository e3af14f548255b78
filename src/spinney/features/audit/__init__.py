"""The audit log as people read it: lists, its head, verification and export.

``commands``  lists of calls and of single entries, the head of the chain, and its verification
``details``   the details of an entry in words
``cli``       the command ``audit``
``page``      the page with its filters, and the form that verifies the chain

Nothing here writes an entry: every change by an operator writes its own in the transaction that makes the change
(``spinney.store.sql.audit``), so an entry exists exactly when the change does. Each entry has a hash over the hash
before it and itself. The chain alone shows that an entry was altered, or removed from the middle; that entries were cut
off at the end is shown only by a head that somebody has kept elsewhere.

Reading concerns all jobs, so the commands take an operator without limits, and verification an admin. A verb on many
jobs writes one entry for each step; ``ListAuditCalls`` joins the steps of one call into one line by the call's id
(``Actor.call``).

Specified by ``tests/contract/test_audit.py`` (which change writes what, and the chain), ``tests/store/test_audit.py``
(a database that was changed past Spinney, and many writers), ``tests/cli/test_audit.py`` (the command) and
``tests/server/pages/test_operator_pages.py`` (the page).
"""
