"""`make demo`: a small shop on two live databases, four views over both, about 40 seconds.

shop      what the shop is made of: tables, first rows, the project folder
writers   a process of its own that keeps changing both databases
serve     the demo's PostgreSQL, started again later by `start-postgres.sh`
watching  the live display
report    what is shown at the end
"""

import warnings

# The package that brings PostgreSQL asks for a folder of the desktop session, and takes another.
warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
