"""Webhooks: other services that are notified when jobs settle; their registration, deliveries and sending.

``sql``           webhooks, and the queue of deliveries, which senders lease for a while
``webhook_rows``  webhooks as rows: read, checked for the rights of their makers, handed over, paused
``health_sql``    how the latest tries of each webhook went
``delivery``      one delivery: its body, one try, its result
``sender``        the background task of a server that sends what is due
``maker_rights``  the rights with which webhooks, schedules and inboxes act for whoever made them
``commands``      the commands of operators for webhooks
``cli``           the command ``webhook``
``page``          the pages of webhooks

The transaction that settles a job writes a delivery for each webhook that fits (``spinney.store``), so
nothing is reported that did not happen, and nothing is forgotten. Servers send; any number of them share the
work by leasing due deliveries. When a sender dies after the request, its lease ends and the delivery is sent
again under the same id, so receivers must remember ids: a delivery comes at least once. Deliveries of one
webhook may overtake each other; receivers that need an order have the number ``seq``. Where no server runs,
``webhook deliver`` sends what is due.

The body is made when it is sent, with the rights that the webhook's maker has then. A maker who is no
operator any more has the webhook paused. Requests go only to public addresses unless the server allows others
(``spinney.reports.safe_transport``), and are signed (``spinney.reports.signatures``). Webhooks that an
application sends as jobs are in ``spinney.reports``.

Specified by ``tests/contract/test_webhooks.py`` (deliveries and leases),
``tests/store/test_webhook_statements.py`` (what settling pays for them), ``tests/service/test_webhooks.py``
(rights), ``tests/server/test_webhook_sender.py`` (sending by several servers),
``tests/reports/test_webhook_delivery.py`` (one try), ``tests/server/identity/test_deleted_makers.py`` (makers
that were deleted), ``tests/server/api/test_webhooks.py`` (the API) and ``tests/cli/test_webhooks.py`` (the
command).
"""
