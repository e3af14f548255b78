"""The queues before this layout: their records are read, listed, and moved into it."""
