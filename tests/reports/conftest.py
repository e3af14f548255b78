"""The whole of it runs on the nodes that the node's own tests start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "node"))
