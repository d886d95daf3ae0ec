"""The limits by which a layer is judged, each with its reason; a page shows them, and a manual explains them."""

from __future__ import annotations

from dataclasses import dataclass

from golden import flags
from golden.nearest import complete

__all__ = ["EVENTS", "IN_A_STEP", "LIMITS", "MOST_LOST", "MOST_RELATIVE", "MOST_SWAMPED", "RARE", "Limit"]

#: Shares below this one are shown as "less than".
RARE = 1e-6


@dataclass(frozen=True)
class Limit:
    """The limit of a share of a layer's steps.

    Parameters
    ----------
    label : str
    share : float
        Beyond it, the layer is called bad; 0 allows none at all.
    unit : float
        So much counts once in the score of a layer.
    meaning : str
    """

    label: str
    share: float
    unit: float
    meaning: str

    @property
    def allowed(self) -> str:
        """The limit in words."""
        return f"{100 * self.share:g}\u00a0%" if self.share else "none"


#: Events by their name in a line, and the distance from the fp32 result, in the order in which they are shown.
LIMITS: dict[str, Limit] = {
    "swamped": Limit("swamped", 0.10, 0.10, "steps that lost their addend whole: it was too small to change the sum"),
    "underflow": Limit("underflow", 0.01, 0.01, "steps whose result was rounded below the smallest normal number"),
    "overflow": Limit("overflow", 0.0, RARE, "steps whose result was beyond the largest number, and became infinite"),
    "invalid": Limit("invalid", 0.0, RARE, "steps without a meaningful result, such as inf − inf; they give NaN"),
    "distance": Limit(
        "distance", 0.05, 0.05, "mean distance of the results from those of fp32, relative to their size"
    ),
}
#: A place goes bad in a step beyond these: results that are 0 though not in fp32; addends lost whole in results so far
#: from fp32.
MOST_LOST, MOST_SWAMPED, MOST_RELATIVE = 0.5, 0.25, 0.1
IN_A_STEP = (
    f"values are not finite or do not fit their format, a sum overflows or is invalid, more than "
    f"{100 * MOST_LOST:g}\u00a0% of the results are 0 and not in fp32, or more than {100 * MOST_SWAMPED:g}\u00a0% of "
    f"the addends are swamped and the results more than {100 * MOST_RELATIVE:g}\u00a0% from fp32"
)
EVENTS = tuple(name for name in LIMITS if name != "distance")
# Every other step is inexact, which has no limit.
complete("golden.torch.instruments.report.limits.LIMITS", ("inexact", *EVENTS), flags.EVENTS)
