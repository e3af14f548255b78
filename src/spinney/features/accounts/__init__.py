"""Accounts of users and tokens: their rights and passwords, how people sign in, and their sessions.

``sql``             users and tokens as rows; passwords come as hashes and secrets as digests
``sign_in_sql``     sessions, one-time links, the counts that slow down guessing, and the keys with which servers sign
``commands``        what admins do with users and tokens, and every user with their own account
``rights_field``    a role with its limits in the JSON of a command
``rights_options``  the same as options of ``user`` and ``token``, and as a column of their tables
``rights_form``     the same as fields of a form, and in words
``cli``             the commands ``user`` and ``token``
``users_page``      the pages on which admins manage users
``tokens_page``     the pages of tokens: the caller's own, and for admins all
``account_page``    the caller's own password and sessions
``sign_in_page``    signing in by password or identity provider, and signing out
``one_time_links``  the page behind a link that sets a password or makes the first admin
``sign_in_forms``   cookies, forms and redirects that the pages for visitors share

Nobody grants more rights than they have. Rights are looked up when a request comes, not copied into a session or token,
so a change takes effect at once on the server that made it and within two seconds on others (``spinney.web.identity``).
The last admin without limits can be neither disabled, deleted nor limited.

A secret (password, token, link, session) exists in clear text only in the answer that creates it; the store has a
digest, the audit nothing of it. Passwords are hashed outside of any transaction (``spinney.service.passwords``), so the
store opens a session only if the hash that was verified is still the one stored. Whoever asks is identified by
``spinney.web.identity`` and ``spinney.service.sign_in``; this package has what they read and write.

Specified by ``tests/contract/test_accounts.py`` (users, tokens, sessions, links and the delay of guesses in the store),
``tests/service/test_accounts.py`` (who may change what), ``tests/service/test_sign_in.py`` (the ways to sign in),
``tests/cli/test_accounts.py`` (the commands), ``tests/server/pages/test_account_pages.py`` (the pages),
``tests/server/identity/test_welcoming.py`` (one-time links) and ``tests/browser/test_sign_in.py`` (the forms in a
browser).
"""
