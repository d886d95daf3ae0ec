"""``python -m golden.torch``: train."""

from golden.torch.commands.line import main

raise SystemExit(main())
