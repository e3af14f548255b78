"""What other writers left half done in the queue is found by `check` and mended by `repair`.

``check``     what is wrong, by the rules of the test mode of Merritt's node dump
``repair``    remedies, each one transaction
``snapshot``  all nodes of the queue, read at about one moment

``check`` changes nothing. A remedy names the versions of the nodes that it was found by, and fails where one has
changed since; what needs a decision is only reported.

Specified by ``tests/bridges/merritt/test_consistency.py``.
"""
