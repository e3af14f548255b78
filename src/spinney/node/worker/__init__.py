"""The code of a worker process: the loop that runs attempts, the ways in which a stage is called, and the state that is
restored between two attempts. It opens no store. The supervisor's side is ``spinney.node.workers``."""
