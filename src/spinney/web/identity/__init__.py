"""Who sends a request: decided by the first of four credentials that the request has.

``authenticator``  the decision, by what store, configuration and kernel say
``cookies``        signed cookies: names, keys and what each proves
``forms``          proofs that a page of this server made a request
``peers``          the system user at the other end of the Unix socket
``proxies``        what a reverse proxy says about user and address
``oidc``           sign-in by an OpenID Connect provider
``sign_in``        signing in and out, for all pages that do it

1. ``Authorization: Bearer spn_…``: a token of the store. A wrong one is refused, whatever else the request
   has.
2. The peer of the Unix socket, by its user id: ``peers`` of ``[server]`` says what it may; the server's own user is
   admin. It acts as ``socket:NAME``: no user's name has a colon, so nobody gets by it what a user of the store of the
   same name may, or what that user submitted. What was passed on by a proxy is refused there: all its visitors would
   be that peer.
3. A session's cookie (``cookies``): by password, by a link, by OpenID Connect (``oidc``).
4. A header in which a reverse proxy names the user, from ``trusted_proxies`` alone (``proxies``).

What a browser sends by itself (3 and 4) changes nothing unless the request proves that a page of this server made it
(``forms``). What was found is kept for a second (``spinney.web.timed_cache``), so that not every request asks the
store, and a request that lasts looks anew (``spinney.web.principal_refresh``); so a token that is
revoked, a session that is ended and rights that are changed elsewhere are obeyed within two seconds.

Whoever is not let in is in the audit: a wrong token or password, a forged form, an unknown peer or user. What the store
keeps of accounts and sessions is in ``spinney.features.accounts``.

Specified by ``tests/server/identity/test_authenticator.py`` (tokens, peers, proxies and their order),
``tests/server/identity/test_forms.py`` (foreign forms), ``tests/server/identity/test_proxies.py`` (addresses),
``tests/server/identity/test_oidc.py`` (a provider), ``tests/server/identity/test_sign_in.py`` (passwords and sessions),
``tests/server/identity/test_welcoming.py`` (links) and ``tests/browser/test_sign_in.py`` (a real browser).
"""

from spinney.web.identity.authenticator import StoreAuthenticator

__all__ = ["StoreAuthenticator"]
