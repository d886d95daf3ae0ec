"""``python -m golden.torch``: train."""

import sys

try:
    from golden.torch.training.commands.line import main

    status = main()
except KeyboardInterrupt:  # before the command line is read, or while the process ends
    print("stopped by Ctrl-C", file=sys.stderr)
    status = 130
raise SystemExit(status)
