"""Identify a device blind, and compare the verdict with the known facts about it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import golden
from golden import Identified
from golden.identification.probes import hard_probe
from lab.devices.device import Array, Device

__all__ = ["Verdict", "judged"]

_NEW_SUMS, _LENGTHS = 4096, (1, 6, 33, 130, 700)


@dataclass(frozen=True)
class Verdict:
    """The verdict of `golden.identify` on a device.

    Parameters
    ----------
    found : Identified
    is_wrong : bool
        Whether it gave a model that does not compute the device's sums.
    is_missed : bool
        Whether it gave no model for a device of the family.
    sums, calls : int
        Sums and calls that identification took.
    seconds : float
        Duration of the identification, the device's time included.
    """

    found: Identified
    is_wrong: bool
    is_missed: bool
    sums: int
    calls: int
    seconds: float


def judged(device: Device, *, verify: int) -> Verdict:
    """Identify a device, and judge the model on sums that no probe has seen."""
    asked: list[int] = []

    def counted(a: Array, b: Array) -> Array:
        result = device.function(a, b)
        asked.append(result.size)
        return result

    start = time.perf_counter()
    found = golden.identify(counted, operand=device.operand, values=device.values, verify=verify)
    seconds = time.perf_counter() - start
    is_wrong = found.model is not None and (device.is_of_family is False or not _same(device, found))
    is_missed = device.is_of_family is True and found.model is None
    return Verdict(found, is_wrong, is_missed, sum(asked), len(asked), seconds)


def _same(device: Device, found: Identified) -> bool:
    """Return whether the model computes new sums as the device does; every NaN is the same."""
    random = np.random.default_rng(0xB11D)
    for number, length in enumerate(_LENGTHS):
        probe = hard_probe(random, device.operand, (_NEW_SUMS // len(_LENGTHS), length), number)
        given = [golden.decode(each, device.operand) for each in (probe.a, probe.b)]
        result = device.function(*given) if device.values else device.function(probe.a, probe.b)
        codes = golden.encode(result, found.out) if device.values else result
        assert found.reduction is not None
        wanted = golden.matmul(probe.a, probe.b, reduction=found.reduction)
        both_nan = found.out.is_nan(codes) & found.out.is_nan(wanted)
        if not (both_nan | (codes == wanted)).all():
            return False
    return True
