"""What people ask of a store, on any store and without anybody's code: one implementation for the command
line, the API and the pages.

``Control`` is one person's hand on a store; its parts (``control.bulk``, ``control.holds``, …) are modules
of their own.
"""

from spinney.control.control import Control

__all__ = ["Control"]
