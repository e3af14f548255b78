"""The HTTP face of a store: a documented API and live pages, over TCP and a Unix socket.

A server keeps nothing of its own: whatever it shows is read from the store, whatever it is asked to do goes through
``spinney.control`` in the name and with the rights of who asks. So several may serve one store, one may be killed at
any instruction, and none needs anybody's code: parameters are checked against the types that nodes registered.

The way of a request, outermost first:

``http_server`` accepts connections (and knows who is at the other end of a Unix socket; ``connection_table`` says
which of them give way when there is no room) · ``request_guard`` refuses a foreign
Host, bounds bodies and their time, and adds the headers that protect pages · ``tracing`` and ``metrics`` measure ·
``identity`` tells who asks, by token, session, peer or proxy · ``api`` and ``ui`` turn the request into one call of
``control`` · ``request_context`` runs that call in a thread that has a store of its own (``store_pool``) ·
``problems`` turns what was refused into an answer, and ``refusal_log`` writes refusals down. What lasts
(``long_responses``, ``events``, a body that comes slowly) looks at who asks again and again (``principal_refresh``),
and takes a place among what is open (``quotas``).

Beside requests: ``events`` looks at the store for all who watch, once for each thing that is watched ·
``webhook_sender`` calls webhooks · ``maintenance`` takes back the work of external workers that have gone.
"""
