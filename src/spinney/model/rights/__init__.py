"""Rights are decided here: who a caller is, which verbs it may use on a job, and who may submit a type.

``accounts``       users, tokens, sessions and one-time links, and the form of their secrets
``actor``          who makes a change, as it is entered with the change and in the audit
``allowed_verbs``  the verbs that a caller may use on a job now, by the job's state and the caller's rights
``submit_rights``  whether a caller may submit a type, and parameters that name what the type limits to some callers

Roles and limits themselves are in ``spinney.model.access``. These are pure rules over ``Rights`` and what the store has
read: a server's routes and pages, ``spinney.service`` and the creators of schedules and inboxes all call them, so that
pages offer what the engine would accept. No secret is stored: an account has the digest of a token, and the argon2 hash
of a password.

Specified by ``tests/model/test_accounts.py``, ``tests/contract/test_accounts.py``, ``tests/service/test_rights.py`` and
``tests/service/test_submit_rights.py``.
"""
