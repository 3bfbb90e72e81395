"""A keeper that replaces a connection instead of handing it on, whatever the kernel can do.

    python keeper_without_takeover.py RUN COMMAND…

The command is the worker to keep; the keeper itself uses the run directory alone.
"""

import sys

from engramfs.daemon import keeper
from engramfs.errors import EngramError

try:
    sys.exit(keeper.run("unused", sys.argv[1], worker=sys.argv[2:], take_over=False))
except EngramError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
