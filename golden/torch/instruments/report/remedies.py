"""Remedies that several rules name: a wider format, a loss scale, lines for the file of a run."""

from __future__ import annotations

import math

from golden.torch.instruments.report.advice import Case
from golden.torch.instruments.report.window import KEPT, Window
from golden.torch.instruments.report.words import percent, power

__all__ = ["good", "is_fixed", "precision", "scale", "wider"]

_WIDER = {"float16": "cbfloat16 or bfloat16", "cb16": "cbfloat16 or bfloat16", "cbfloat16": "bfloat16"}


def wider(name: str) -> str:
    """Return the formats of more range than this one, in words."""
    return _WIDER.get(name, "a format with more exponent bits")


def precision(**settings: object) -> str:
    """Write settings as the file of a run has them."""
    return f"precision: {{{', '.join(f'{key}: {value}' for key, value in settings.items())}}}"


def scale(exponent: int) -> str:
    """Write a loss scale as YAML reads it."""
    return repr(math.ldexp(1.0, exponent))


def good(window: Window) -> str:
    """Say which loss scales are good."""
    return f"Scales from {power(window.low)} to {power(window.high)} keep {percent(KEPT)} of these gradients normal."


def is_fixed(case: Case) -> bool:
    """Tell whether the scale never changed; one that does steps back by itself."""
    return len({step.loss_scale for step in case.run.steps}) == 1
