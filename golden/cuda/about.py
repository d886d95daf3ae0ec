"""Whether this machine has everything that kernels on cards need."""

from __future__ import annotations

from typing import Any, NamedTuple

from golden.cuda.compiling import ARCHITECTURES, architecture_for, cache_folder, nvrtc_version

__all__ = ["Card", "Info", "available", "info"]


class Card(NamedTuple):
    """A card, the compute capability it has, and the architecture that its kernels are compiled for.

    `architecture` is None if no kernel runs there.
    """

    name: str
    capability: tuple[int, int]
    architecture: int | None


class Info(NamedTuple):
    """Versions of compiler and driver (None if missing), the cards, and the folder of compiled kernels."""

    nvrtc: str | None
    driver: str | None
    cards: tuple[Card, ...]
    architectures: tuple[int, ...]
    cache: str


def available() -> bool:
    """Tell whether exact kernels can run here: there is a compiler, and a card that they are compiled for."""
    found = info()
    return found.nvrtc is not None and any(card.architecture for card in found.cards)


def info() -> Info:
    """Return the compiler, driver and cards of this machine; never raises if some are missing."""
    version, cards = _driver()
    return Info(nvrtc_version(), version, cards, ARCHITECTURES, str(cache_folder()))


def _driver() -> tuple[str | None, tuple[Card, ...]]:
    try:
        from cuda.bindings import driver

        code, number = driver.cuDriverGetVersion()
        if int(code) or int(driver.cuInit(0)[0]):
            return None, ()
    except (ImportError, RuntimeError):  # the second where the bindings find no driver
        return None, ()
    version = f"{number // 1000}.{number % 1000 // 10}"
    return version, tuple(_card(driver, index) for index in range(driver.cuDeviceGetCount()[1]))


def _card(driver: Any, index: int) -> Card:
    device = driver.cuDeviceGet(index)[1]
    name = driver.cuDeviceGetName(256, device)[1].partition(b"\0")[0].decode()  # the rest of the buffer comes, too
    wanted = driver.CUdevice_attribute
    major = driver.cuDeviceGetAttribute(wanted.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)[1]
    minor = driver.cuDeviceGetAttribute(wanted.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)[1]
    try:
        return Card(name, (major, minor), architecture_for((major, minor)))
    except RuntimeError:
        return Card(name, (major, minor), None)
