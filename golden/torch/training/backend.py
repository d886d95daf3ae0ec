"""The kind of device that a run asks for."""

from __future__ import annotations

from typing import Any

__all__ = ["device_of"]

_KINDS = ("CPU", "GPU", "CSX")


def device_of(backend: Any, device: str | None) -> str:
    """Return "CPU", "GPU" or "CSX".

    Parameters
    ----------
    backend : object or str, optional
        What ``backend("CPU")`` of a script gave: anything with the name of a device, or the name.
    device : str, optional
        "CPU", "GPU" or "CSX" in any case; not beside `backend`.

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
        raise TypeError(f"{argument}: got {given!r}, must be 'CPU', 'GPU', 'CSX' or an object with such a device type")
    kind = name.upper()
    if kind not in _KINDS:
        raise ValueError(f"{argument}: got {name!r}, must be 'CPU', 'GPU' or 'CSX'")
    return kind
