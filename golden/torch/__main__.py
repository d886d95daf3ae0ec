"""``python -m golden.torch``: train."""

from golden.torch.cli import main

raise SystemExit(main())
