"""All schedules by their own names, for any entry of a parameter group: a subclass sets ``param_group_key``."""

from golden.torch.cerebras import compositions, curves, cycles, schedule
from golden.torch.cerebras.compositions import *  # noqa: F403 - its names; so the next three
from golden.torch.cerebras.curves import *  # noqa: F403
from golden.torch.cerebras.cycles import *  # noqa: F403
from golden.torch.cerebras.schedule import *  # noqa: F403

__all__: list[str] = []
__all__ += compositions.__all__
__all__ += curves.__all__
__all__ += cycles.__all__
__all__ += schedule.__all__
