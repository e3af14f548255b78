"""``python -m spinney``: the same as the command ``spinney``."""

from spinney.cli.main import main

main()
