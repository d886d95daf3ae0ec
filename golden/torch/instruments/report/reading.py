"""Reading ``observations.jsonl``: each line is checked and added to the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from golden.counts import COUNTED
from golden.torch.instruments.report.records import (
    PASSES,
    TENSORS,
    BadStep,
    Histogram,
    Layer,
    Run,
    Settings,
    Step,
    Trial,
    scale_exponent,
)
from golden.torch.instruments.report.words import number
from golden.torch.instruments.rows import NAME, VERSION

__all__ = ["Reader", "read_run", "run_file"]


_HOW = (
    "train with Trainer(observe=20), with observe: {every: 20} in the run file, or in "
    "`with cstorch.observe(model, every=20, folder=...)`"
)
_OTHERS = (".yaml", ".yml", ".csv", ".html")  # beside it in the folder of a run
_counts = itemgetter(*COUNTED)
_distances = itemgetter("relative", "ulp_mean", "ulp_max")
_UNKNOWN = (math.nan,) * 3
# Operations whose gradient of the weight has the gradient of the output on its right.
_FROM_OUTSIDE = ("linear", "convolution")


def run_file(place: Path) -> Path:
    """Return the file of observations of a run, given its folder or the file itself.

    Raises
    ------
    ValueError
        If there is none.
    """
    if place.is_file():
        if place.suffix in _OTHERS:
            raise ValueError(f"RUN: got {place}, must be the folder of a run, or its {NAME}")
        return place
    if not place.is_dir():
        raise ValueError(f"RUN: got {place}, which is not there; give the folder of a run")
    if not (place / NAME).is_file():
        raise ValueError(f"RUN: got {place}, which has no {NAME}; {_HOW}")
    return place / NAME


def read_run(place: Path, name: str, advance: Callable[[int], None] = lambda size: None) -> Run:
    """Read a run.

    Parameters
    ----------
    place : Path
        Its folder, or its file of observations.
    name : str
        What the page calls it.
    advance : callable
        Is told, now and then, how many more bytes have been read.

    Raises
    ------
    ValueError
        If there are no observations, or a line before the last is not one of them.
    """
    path, reader, unread = run_file(place), Reader(name), 0
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            unread += len(text)
            if unread > 1 << 22:
                advance(unread)
                unread = 0
            if not text.strip():
                continue
            try:
                line = from_json(text)
            except ValueError as error:
                if file.read(1):
                    raise ValueError(f"{path}: line {number} is damaged: {error}; delete that line") from None
                reader.notices.append("The last line of the file is cut off. The run was stopped, or still goes on.")
                break
            try:
                reader.take(line)
            except _Refused as error:
                raise ValueError(f"{path}: line {number}: {error}") from None
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise ValueError(f"{path}: line {number}: {where}: got {first['input']!r}: {first['msg']}") from None
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                wrong = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise ValueError(f"{path}: line {number} is no line of an observed run: {wrong}") from None
    advance(unread)
    try:
        return reader.finished()
    except _Refused as error:
        raise ValueError(f"{path}: {error}") from None


class _Refused(Exception):
    """The fault of a line, in words."""


class Reader:
    """Adds up the lines of a run called `name`. Products wait for the line of their step: it may have been skipped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._settings: Settings | None = None
        self._steps: dict[int, Step] = {}
        self._layers: dict[tuple[str, str, str], Layer] = {}
        self._bad: list[BadStep] = []
        self._gradients: dict[int, Histogram] = {}
        self._waiting: list[dict[str, Any]] = []
        self._left_out = 0
        self._trial: Trial | None = None
        self._unknown: set[str] = set()
        self.notices: list[str] = []

    def take(self, line: Any) -> None:
        """Add a line."""
        if not isinstance(line, dict):
            raise _Refused(f"got {line!r}, must be an object with a kind")
        match line.get("kind"):
            case "product":
                self._take_product(line)
            case "step":
                self._take_step(Step.model_validate(line))
            case "first_bad":
                self._bad.append(_bad_step(line))
            case "run":
                self._take_settings(line)
            case "trial":
                self._trial = Trial.model_validate(line)
            case other:
                self._unknown.add(str(other))

    def _take_settings(self, line: dict[str, Any]) -> None:
        if line.get("version") != VERSION:
            raise _Refused(
                f"version: got {line.get('version')!r}, must be {VERSION}; use the cbfloat that wrote the file"
            )
        settings = Settings.model_validate(line)
        if self._settings is not None:
            self.notices.append(f"The run was resumed at {settings.started}.")
        self._settings = settings

    def _take_step(self, step: Step) -> None:
        self._steps[step.step] = step
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._take_product(line)

    def _take_product(self, line: dict[str, Any]) -> None:
        step = self._steps.get(line["step"])
        if step is None:
            self._waiting.append(line)
        else:
            self._add(line, step)

    def _add(self, line: dict[str, Any], step: Step | None) -> None:
        direction, is_forward = line["pass"], line["pass"] == "forward"
        if direction not in PASSES:
            raise _Refused(f"pass: got {direction!r}, must be one of {', '.join(PASSES)}")
        if step is not None and step.skipped and not is_forward:
            self._left_out += 1
            return
        key = str(line["module"]), direction, str(line["operation"])
        layer = self._layers.get(key)
        if layer is None:
            layer = self._layers[key] = Layer(*key)
            layer.tensors = {name: Histogram(str(line["tensors"][name]["format"])) for name in TENSORS}
        layer.step_numbers.append(line["step"])
        layer.counted_products.extend(_counts(line["products"]))
        layer.counted_promotions.extend(_counts(line["promotions"]))
        distance = line["distance"]
        layer.measured_distances.extend(_UNKNOWN if distance is None else _distances(distance))
        layer.operand, layer.level, layer.shape = str(line["operand"]), int(line["level"]), tuple(line["shape"])
        layer.calls += line["calls"]
        layer.rows += line["rows"]
        layer.rows_counted += line["rows_counted"]
        largest = line["largest_exponent"]
        if largest is not None and (layer.largest_exponent is None or largest > layer.largest_exponent):
            layer.largest_exponent = largest
        tensors = line["tensors"]
        for name, histogram in layer.tensors.items():
            histogram.add(tensors[name])
        if not is_forward:
            scale = scale_exponent(step.loss_scale if step is not None else None)
            known = self._gradients.setdefault(scale, Histogram(str(tensors["output"]["format"])))
            known.add(tensors["output"])
            if direction == "gradient_of_weight" and layer.operation in _FROM_OUTSIDE:
                known.add(tensors["right"])  # the gradient that comes in, before it is rounded

    def _placed(self, bad: BadStep) -> BadStep:
        """Return a bad step that knows whether it counts."""
        step = self._steps.get(bad.step)
        return replace(bad, in_skipped_step=step is not None and step.skipped and bad.direction != "forward")

    def finished(self) -> Run:
        """Return the run; every line is read."""
        if self._settings is None:
            raise _Refused(f"has no line of kind 'run', must begin with one; {_HOW}")
        for line in self._waiting:  # the step was under way when the run ended
            self._add(line, None)
        if not self._steps and not self._layers:
            raise _Refused("has no step yet; open the report when the run has made some")
        if not self._layers:
            self.notices.append(f"No step is observed yet; the run observes one in {self._settings.every}.")
        if self._unknown:
            self.notices.append(f"Lines of unknown kinds are left out: {', '.join(sorted(self._unknown))}.")
        places = {name: place for place, name in enumerate(self._settings.modules)}
        order = sorted(
            self._layers.values(), key=lambda each: (places.get(each.module, len(places)), PASSES.index(each.direction))
        )
        for layer in order:
            for histogram in layer.tensors.values():
                _check_exponents(histogram, f"{layer.module}, {layer.direction}")
        return Run(
            self._name,
            self._settings,
            [self._steps[number] for number in sorted(self._steps)],
            order,
            sorted(map(self._placed, self._bad), key=lambda each: each.step),
            self._gradients,
            self._left_out,
            self.notices,
            self._trial,
        )


def _bad_step(line: Mapping[str, Any]) -> BadStep:
    evidence = line.get("evidence") or {}
    if isinstance(evidence, dict):
        evidence = ", ".join(f"{key} {_rounded(value)}" for key, value in evidence.items())
    return BadStep(int(line["step"]), str(line["module"]), str(line["pass"]), str(line["cause"]), str(evidence))


def _rounded(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return number(value, 3) if isinstance(value, float) else value


def _check_exponents(histogram: Histogram, where: str) -> None:
    try:
        _ = histogram.by_exponent
    except ValueError as error:
        raise _Refused(f"{where}: exponents: {error}") from None
