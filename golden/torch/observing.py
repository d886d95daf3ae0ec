"""The effects of low precision inside the products of a training, by module, pass and operation: ``cstorch.observe``.

Exact products pass by an `Observer` in the steps that are observed, and by nothing else in the others. It finds the
place of a product (`attribution`), takes a few rows of it (`samples`), and counts the events in them and the exponents
of all values (`tallies`). The counts of a step are summed over the processes, judged, and written (`rows`, `writing`).
At the end, the levels that the report advises are tried (`trial`).
"""

from golden.torch.instruments.observe.observation import Observation, ObservationSettings, as_settings, observe
from golden.torch.instruments.observe.report import ObservationReport, WorstPlace
from golden.torch.instruments.rows import (
    NAME,
    DistanceRow,
    EventsRow,
    FirstBadRow,
    HistogramRow,
    ProductRow,
    RunRow,
    StepRow,
    TensorsRow,
    TrialRow,
    read_rows,
)

__all__ = [
    "NAME",
    "DistanceRow",
    "EventsRow",
    "FirstBadRow",
    "HistogramRow",
    "Observation",
    "ObservationReport",
    "ObservationSettings",
    "ProductRow",
    "RunRow",
    "StepRow",
    "TensorsRow",
    "TrialRow",
    "WorstPlace",
    "as_settings",
    "observe",
    "read_rows",
]
