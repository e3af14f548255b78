"""Frames of failures: where each frame was, and what its variables held, as plain JSON that can be opened later.

``descriptions``  one value as a bounded description, without running code of the user
``frames``        an exception with its causes as a document
``documents``     reads such a document, and trusts nothing in it
``value_paths``   follows ``order.rows[3]['id']`` along what was kept
``programs``      ``install``, by which a Python program that a stage starts keeps its own

A worker makes the document in its own process when an attempt fails (``spinney.node.worker.failure_frames``), and
writes it beside the output of the attempt; ``spinney.features.postmortem`` shows it. A program that a stage starts opts
in by ``install``.

Making a document must never change the outcome of the attempt: it runs no code of the application, raises nothing, and
is bounded in bytes, depth, frames and processor time (``Bounds``). Values whose names look like a secret, and secret
parameters, are left out when it is made. Nothing is ever pickled, so a document can be opened without the code that
failed, on any machine.

Specified by ``tests/postmortem/test_descriptions.py`` (values), ``tests/postmortem/test_frames.py`` (documents),
``tests/node/test_failure_frames.py`` (workers and programs), ``tests/cli/test_postmortem.py`` (reading them) and
``tests/server/pages/test_postmortem.py`` (the page).
"""

from spinney.postmortem.programs import install

__all__ = ["install"]
