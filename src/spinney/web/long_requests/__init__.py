"""Requests that last: their bodies and answers are bounded, and each piece of an answer needs the caller's right anew.

``bodies``          request bodies: counted, timed and bounded
``quotas``          how many long requests a user or an address may have open
``long_responses``  responses whose every piece needs the right anew

Everybody may begin requests that take hours. So each has a place in a quota, a body that comes too slowly is cut off,
and a caller who has lost the right to the rest does not get it.

Specified by ``tests/server/test_request_guard.py`` (bodies), ``tests/server/test_room.py`` (quotas) and
``tests/server/test_long_requests.py`` (rights that change meanwhile).
"""
