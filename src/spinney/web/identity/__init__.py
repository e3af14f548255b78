"""Who asks: told by the first of these that a request bears.

1. ``Authorization: Bearer spn_…``: a token of the store. A wrong one is refused, whatever else is borne.
2. The peer of the Unix socket, by its user id: ``peers`` of ``[server]`` says what it may; the server's own user is
   admin. It acts as ``socket:NAME``: no user's name has a colon, so nobody gets by it what a user of the store of the
   same name may, or what that user submitted. What was passed on by a proxy is refused there: all its visitors would
   be that peer.
3. A session's cookie (``cookies``): by password, by a link, by OpenID Connect (``oidc``).
4. A header in which a reverse proxy names the user, from ``trusted_proxies`` alone (``proxies``).

What a browser sends by itself (3 and 4) moves nothing unless the request proves that a page of ours made it
(``forms``). What was found is kept for a second (``timed_cache``), so that not every request asks the store, and a
request that lasts looks anew (``principal_refresh``); so a token that is revoked, a session that is ended and rights
that are changed elsewhere are obeyed within two seconds.

Whoever is not let in is in the audit: a wrong token or password, a forged form, an unknown peer or user.
"""

from spinney.web.identity.authenticator import StoreAuthenticator

__all__ = ["StoreAuthenticator"]
