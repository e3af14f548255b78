"""What the tests of pages share with those of the command line."""

from cli.conftest import until_true

__all__ = ["until_true"]
