"""The kill tests start the same nodes as the node's own tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "node"))
