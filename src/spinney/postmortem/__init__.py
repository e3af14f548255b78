"""Frames of failures: where each frame was, and what its variables held, as plain JSON that can be opened later.

``descriptions`` turns one value into a bounded description without running code of the user, ``frames`` an exception
with its causes into a document, ``documents`` reads one back, ``value_paths`` follows ``order.rows[3]['id']`` along
what was kept. Workers keep such a document for each failed attempt; a Python program that a stage starts opts in by
``install``. Nothing is ever pickled, so a document can be opened without the code that failed, on any machine.
"""

from spinney.postmortem.programs import install

__all__ = ["install"]
