"""An application whose modules with job types nobody imports."""

from spinney import Spinney

app = Spinney()
