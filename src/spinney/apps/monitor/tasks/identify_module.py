"""``python -m spinney.apps.monitor.tasks.identify_module FILE identify``: print what a Python task calls itself.

A module thereby answers ``identify`` as a program does. A module that is no task ends it with a sentence on stderr and
the exit code 1."""

import sys
from pathlib import Path

from spinney.apps.monitor.tasks import modules, tcl_list

if __name__ == "__main__":
    try:
        name, description, _ = modules.load(Path(sys.argv[1]))
    except modules.Unfit as problem:
        sys.exit(str(problem))
    sys.stdout.write(tcl_list.join([name, description]) + "\n")
