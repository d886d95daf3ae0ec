"""Where a run runs: always on this machine's CPU, whatever a script for other hardware asks for."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["device_of"]

_told: set[str] = set()


def device_of(backend: Any, device: str | None) -> str:
    """Return "CPU" or "CSX", and say once that a wafer is emulated here.

    Parameters
    ----------
    backend : object or str, optional
        What ``backend("CPU")`` of a script gave: anything with the name of a device, or the name.
    device : str, optional
        "CPU" or "CSX" in any case; not beside `backend`.

    Raises
    ------
    TypeError, ValueError
        If both are given, or something is no known device.
    """
    if backend is not None and device is not None:
        raise ValueError(f"device: got {device!r} beside a backend, must be one of the two, and the other None")
    argument, given = ("backend", backend) if backend is not None else ("device", device)
    if given is None:
        return "CPU"
    name = given
    for attribute in ("device_type", "backend_type", "device", "type", "name"):
        if isinstance(name, str):
            break
        name = getattr(name, attribute, name)
    if not isinstance(name, str):
        raise TypeError(f"{argument}: got {given!r}, must be 'CPU', 'CSX' or an object with such a device type")
    kind = name.upper()
    if kind not in ("CPU", "CSX"):
        raise ValueError(f"{argument}: got {name!r}, must be 'CPU' or 'CSX'; both run on this machine's CPU")
    if kind == "CSX" and kind not in _told:
        _told.add(kind)
        logging.getLogger("golden.torch").warning(
            "%s: CSX runs on this machine's CPU, with the arithmetic of the hardware bit for bit", argument
        )
    return kind
