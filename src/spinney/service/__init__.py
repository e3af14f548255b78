"""What every operation on a store needs, whoever its caller is and wherever the call comes from.

``service``           the caller with name and rights, and the store: the base of all services
``queries``           everything that is read, within limits and without secrets
``visibility``        what a caller with limits is shown of holds, locks and messages about others
``redaction``         secret parameters in everything that is shown
``order_scope``       which verbs a caller may use, and on which jobs
``filter_checks``     names in a filter that do not exist
``canary``            a few jobs first, and more while few of them fail
``submitter``         new jobs: checked, and stored in one transaction
``submission_lines``  submissions as lines of JSON
``submit_rights``     what a caller may submit
``sign_in``           passwords, tokens, sessions and links
``login_limits``      what slows down guesses of passwords
``passwords``         hashes of passwords
``refusal_log``       refusals in the audit, without a flood of them

A feature's operations are commands (``spinney.features.holds.commands``, say), or a ``Service`` of its own on top of
this; ``spinney.commands.control.Control`` reaches them for one caller on one store. A service is made for its caller
and belongs to the thread of its store; ``part`` gives another one for the same caller.

Rights are checked here and in commands. The store itself checks only whether the maker of a schedule, webhook or inbox
still has the rights for it, because that is asked long after the maker has gone
(``spinney.features.webhooks.maker_rights``). A job outside of the caller's limits does not exist: reading it raises the
same NoSuchJob as an unknown number, and no count, sentence or suggestion tells of it. Whoever has opened the store
itself (``is_local``) has all rights, since the file or the database could be read anyway. A refusal for lack of rights
through a server is entered into the audit.

Specified by ``tests/service/test_rights.py`` (who may do what), ``tests/service/test_limits.py`` (what limits mean),
``tests/service/test_queries.py`` (reading), ``tests/service/test_submit_rights.py`` (submission),
``tests/service/test_sign_in.py`` (sign-in and its delays), ``tests/service/test_refusal_log.py`` (refusals in the
audit), ``tests/service/test_bulk.py`` (canaries) and ``tests/commands/test_control.py`` (``Control`` on a real store).
"""
