"""What takes long: ``make test`` runs a short form of it, or leaves it out; SPINNEY_LONG=1 runs it whole."""

import os

import pytest

LONG = bool(os.environ.get("SPINNEY_LONG"))
long_alone = pytest.mark.skipif(not LONG, reason="takes long; SPINNEY_LONG=1 runs it (make long)")
"""For a test of which another shows the most in less time."""
