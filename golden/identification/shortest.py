"""The shortest sum that a model computes otherwise than the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from golden.identification.device import Device
from golden.identification.findings import Finding
from golden.identification.fit import Examples
from golden.identification.probes import Probe

__all__ = ["shortest"]

# Of the device, for a sum of thousands of terms.
_MOST_CALLS = 500


def shortest(model: Any, examples: Examples, device: Device | None) -> Finding | None:
    """Return the shortest failing sum; terms that do not matter become zeros, where the device can be asked again."""
    failing: Probe | None = None
    for probe, result in zip(examples.asked, examples.results, strict=True):
        wrong = np.nonzero((examples.computed(probe, model) != result)[:, 0])[0]
        if len(wrong) and (failing is None or probe.a.shape[1] < failing.a.shape[1]):
            failing = Probe("hard", probe.a[wrong[:1]], probe.b, (int(result[wrong[0], 0]),))
    if failing is None:
        return None
    if device is not None:
        shrunk = _shrunk(model, failing, examples, device)
        if shrunk is None:
            return None
        failing = shrunk
    computed = int(examples.computed(failing, model)[0, 0])
    pairs = zip(failing.a[0].tolist(), failing.b[:, 0].tolist(), strict=True)
    products = tuple((x, y) for x, y in pairs if x or not examples.operand.is_finite(y))
    statement = f"The shortest sum found that differs: of {failing.a.shape[1]} products; the model gives {computed:#x}."
    return Finding(statement, products, failing.about[0])


def _shrunk(model: Any, failing: Probe, examples: Examples, device: Device) -> Probe | None:
    """Return a failing sum with fewer terms; None if the device by itself computes what the model does."""

    def fails(a: Any) -> int | None:
        probe = Probe("hard", a, failing.b)
        result = examples.plain(device.product(probe))
        return int(result[0, 0]) if (examples.computed(probe, model) != result).any() else None

    a, result = failing.a.copy(), fails(failing.a)
    if result is None:
        return None
    step, last = max(1, a.shape[1] // 2), device.calls + _MOST_CALLS
    while step:
        for at in range(0, a.shape[1], step):
            fewer = a.copy()
            fewer[:, at : at + step] = 0
            if device.calls < last and (fewer != a).any() and (found := fails(fewer)) is not None:
                a, result = fewer, found
        step //= 2
    return Probe("hard", a, failing.b, (result,))
