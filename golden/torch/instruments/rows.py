"""The lines of ``observations.jsonl``: one JSON object a line, without NaN and infinity.

=============  ==========================================================================================
`kind`         tells
=============  ==========================================================================================
``run``        what is observed, and in which precision: the first line, and one where the run goes on
``step``       every step of the training: loss, loss scale, whether it was skipped
``product``    in a step that is observed, the products of one operation in one pass of one module
``first_bad``  where and why the products of a module went bad in a pass, for the first time
``trial``      at the end, what the levels that the report would advise do to a step
=============  ==========================================================================================

Lines of one step come together: its products in the order in which they first ran, then what went bad, then the step
itself. A run that goes on after a checkpoint drops the lines after it and appends its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from golden.counts import COUNTED
from golden.nearest import complete

__all__ = [
    "NAME",
    "VERSION",
    "DistanceRow",
    "EventsRow",
    "FirstBadRow",
    "HistogramRow",
    "ProductRow",
    "Row",
    "RunRow",
    "StepRow",
    "TensorsRow",
    "TrialRow",
    "read_rows",
]

#: The file in the folder of a run, and the version of its lines.
NAME = "observations.jsonl"
VERSION: Literal[1] = 1

_Pass = Literal["forward", "gradient_of_input", "gradient_of_weight"]
_Count = Annotated[int, Field(ge=0)]


class _Row(BaseModel):
    # In Python a field named `pass` is `direction`.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def line(self) -> str:
        """Return it as a line of the file."""
        return self.model_dump_json(by_alias=True) + "\n"


class RunRow(_Row):
    """The run, and its observed parts.

    Parameters
    ----------
    model : str
        Its class.
    half : str
        Format of the factors of products.
    level, chunk, rounding
        Model-wide level, chunk length (None: any) and mode of the steps.
    reduction : str
        What a forward product computes that nothing in the model changes: the line of a `golden.Reduction`.
    every : int
        Steps from one that is observed to the next.
    modules : list of str
        Names of the modules, in the order of their definition; "" is the model itself.
    cbfloat, torch : str
        Versions.
    started : str
        Date and time, ISO 8601.
    """

    kind: Literal["run"] = "run"
    version: Literal[1] = VERSION
    model: str
    half: str
    level: Annotated[int, Field(ge=0, le=2)]
    chunk: Annotated[int, Field(ge=1)] | None
    rounding: str
    reduction: str = ""  # files of older versions have none
    every: Annotated[int, Field(ge=1)]
    modules: list[str]
    cbfloat: str
    torch: str
    started: str


class StepRow(_Row):
    """One step of the training.

    Parameters
    ----------
    step : int
        From 1.
    loss : float or None
        None where it is not finite, or unknown.
    loss_scale : float or None
        That of this step; None where nothing is scaled.
    skipped : bool
        Whether the optimizer left it out, because gradients overflowed.
    finite : bool
        Whether loss and gradients were finite, as far as the loss and the gradient scaler tell.
    observed : bool
        Whether its products were looked at.
    """

    kind: Literal["step"] = "step"
    step: Annotated[int, Field(ge=1)]
    loss: float | None
    loss_scale: float | None
    skipped: bool
    finite: bool
    observed: bool


class EventsRow(_Row):
    """The events in the steps of the counted rows, as in `golden.Events`."""

    steps: _Count
    inexact: _Count
    underflow: _Count
    overflow: _Count
    invalid: _Count
    swamped: _Count


complete("golden.torch.instruments.rows.EventsRow", EventsRow.model_fields, COUNTED)


class DistanceRow(_Row):
    """The distance of the counted rows from the product in fp32 of the same values.

    Parameters
    ----------
    relative : float
        Frobenius norm of the difference, by that of the product in fp32.
    ulp_mean, ulp_max : float
        Of the difference, in ulp of the results' format at the result in fp32.
    """

    relative: float
    ulp_mean: float
    ulp_max: float


class HistogramRow(_Row):
    """The values of a tensor.

    Parameters
    ----------
    format : str
        The format that they are rounded to (operands), or are in (results).
    total, zero, subnormal, infinite, nan : int
        Values; subnormal are those below the format's smallest normal number. Operands are counted as they come, before
        they are rounded.
    exponents : dict of str to int
        Unbiased exponent -> how many finite values other than 0 have it.
    """

    format: str
    total: _Count
    zero: _Count
    subnormal: _Count
    infinite: _Count
    nan: _Count
    exponents: dict[str, int]


class TensorsRow(_Row):
    """The operands of a product, whole, and its results."""

    left: HistogramRow
    right: HistogramRow
    output: HistogramRow


class ProductRow(_Row):
    """The products of one operation, in one pass of one module, in one step.

    Parameters
    ----------
    step, module, operation
        Where. The module is "" for a product outside of the modules, "(compiled)" where a compiler hides it.
    direction : str
        The pass, ``pass`` in the file.
    calls, calls_counted, recomputed : int
        Products; those that were looked at; those that a checkpoint computed for the second time.
    level : int
    operand : str
        Format of the factors.
    shape : list of int
        M, N and K of the first call, for all its matrices together: M rows of N sums of K products each.
    rows, rows_counted : int
        Rows of all calls that were looked at, and how many of them were counted.
    products, promotions : EventsRow
        Of the counted rows.
    largest_exponent : int or None
        Exponent of the largest partial sum or total in the counted rows.
    distance : DistanceRow or None
    tensors : TensorsRow
    """

    kind: Literal["product"] = "product"
    step: Annotated[int, Field(ge=1)]
    module: str
    direction: _Pass = Field(alias="pass")
    operation: str
    calls: Annotated[int, Field(ge=1)]
    calls_counted: Annotated[int, Field(ge=1)]
    recomputed: _Count
    level: Annotated[int, Field(ge=0, le=2)]
    operand: str
    shape: tuple[_Count, _Count, _Count]
    rows: _Count
    rows_counted: _Count
    products: EventsRow
    promotions: EventsRow
    largest_exponent: int | None
    distance: DistanceRow | None
    tensors: TensorsRow


class FirstBadRow(_Row):
    """The first step that is observed in which the products of a module went bad in a pass.

    Parameters
    ----------
    step, module
    direction : str
        The pass, ``pass`` in the file.
    cause : str
        In words.
    evidence : dict
        The numbers that show it.
    """

    kind: Literal["first_bad"] = "first_bad"
    step: Annotated[int, Field(ge=1)]
    module: str
    direction: _Pass = Field(alias="pass")
    cause: str
    evidence: dict[str, str | int | float | None]


class TrialRow(_Row):
    """A step that was run again with new levels, at the end of the observation.

    Parameters
    ----------
    step : int
        Steps that were done.
    levels : dict
        By module, and there by ``fwd`` and ``bwd``.
    before, after : float or None
        Relative distance of results and gradients from those of fp32, without these levels and with them: geometric
        mean of those that the levels change, each 1 at most; None where some are not finite.
    helps : bool
        Whether that is less by a third or more.
    """

    kind: Literal["trial"] = "trial"
    step: Annotated[int, Field(ge=1)]
    levels: dict[str, dict[str, int]]
    before: float | None
    after: float | None
    helps: bool


Row = RunRow | StepRow | ProductRow | FirstBadRow | TrialRow
_ADAPTER: TypeAdapter[Row] = TypeAdapter(Annotated[Row, Field(discriminator="kind")])


def read_rows(path: Path) -> list[Row]:
    """Read a file; a last line that a killed run has left unfinished is no line.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If a line is not what it must be; it names the line.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    rows: list[Row] = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            rows.append(_ADAPTER.validate_python(json.loads(line, parse_constant=_refuse)))
        except ValidationError as error:
            first: Any = error.errors()[0]
            at = ".".join(map(str, first["loc"][1:])) or "kind"
            raise ValueError(f"{path}, line {number}, {at}: got {first['input']!r}, {first['msg']}") from None
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: got {line[:60]!r}, must be a JSON object ({error})") from None
    return rows


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
