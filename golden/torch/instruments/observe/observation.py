"""The observation of a training run: the choice of steps, and the rows after each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from golden import __version__
from golden.reduction import DEFAULT_CHUNK
from golden.torch.common.arguments import check_count
from golden.torch.common.processes import rank, world_size
from golden.torch.instruments.observe.observer import Observer
from golden.torch.instruments.observe.report import ObservationReport
from golden.torch.instruments.observe.tallies import cause_of, merged
from golden.torch.instruments.observe.trial import LevelTrial
from golden.torch.instruments.observe.writing import Board, ObservationFile
from golden.torch.instruments.rows import FirstBadRow, Row, RunRow, StepRow
from golden.torch.settings.half import current_half
from golden.torch.settings.levels import model_level
from golden.torch.settings.plan import plan_of
from golden.torch.settings.scopes import Settings, scopes

__all__ = ["Observation", "ObservationSettings", "as_settings", "observe"]


@dataclass(frozen=True)
class ObservationSettings:
    """How much is looked at.

    Parameters
    ----------
    every : int
        Steps from one that is observed to the next; the first step is one.
    rows : int
        Rows of each product that are counted.
    tensorboard : bool
        Whether to write event files, too, into ``tensorboard`` in the folder of the run.

    Raises
    ------
    TypeError, ValueError
        If a number is not an int from 1, or `tensorboard` not a bool.
    """

    every: int = 20
    rows: int = 16
    tensorboard: bool = False

    def __post_init__(self) -> None:
        check_count(self.every, "every")
        check_count(self.rows, "rows")
        if not isinstance(self.tensorboard, bool):
            raise TypeError(f"tensorboard: got {self.tensorboard!r}, must be True or False")


def as_settings(given: Any, argument: str = "observe") -> ObservationSettings | None:
    """Return settings given as such, as the steps between two observations, or as a mapping; None for None."""
    if given is None or isinstance(given, ObservationSettings):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        check_count(given, argument)
        return ObservationSettings(given)
    names = ObservationSettings.__dataclass_fields__
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ValueError(f"{argument}: got the key {name!r}, must be of {', '.join(names)}")
        return ObservationSettings(**given)
    raise TypeError(f"{argument}: got {given!r}, must be an int of steps, a mapping with {', '.join(names)}, or None")


def observe(
    model: nn.Module, every: int = 20, folder: str | Path | None = None, *, rows: int = 16, tensorboard: bool = False
) -> Observation:
    """Look into the exact products of a training, in every so many steps: a context manager around the loop.

    In an observed step, a few rows of each product, forward and backward, are computed once more. The events in their
    steps are counted (NUMERICS section 11): overflow, underflow, swamped addends. So are the exponents of operands and
    results, and the distance from the product in fp32 is measured. Each count belongs to a module, a pass and an
    operation. The results of the training keep their bits.

    A step ends with ``update()`` of a gradient scaler, or, if nothing was scaled, with the step of an optimizer of the
    model's parameters. After a step that was skipped, or whose loss is not finite, the next one is observed out of
    turn, once in `every` steps. Products in evaluation mode between two steps are left out. So are products of another
    model, and the log ``golden.torch`` says so once. The loss of a step is the sum of all scaled losses. In code that
    ``torch.compile`` makes, a product belongs to the module that owns its weight, and one without a weight to
    "(compiled)".

    On several processes each must enter it; counts are summed over them, and process 0 writes.

    Parameters
    ----------
    model : nn.Module
        Its modules give the names.
    every : int
        Steps from one that is observed to the next; the first step is one.
    folder : path, optional
        Where ``observations.jsonl`` is written, a line or more after each step. None writes nothing.
    rows : int
        Rows of each product that are counted.
    tensorboard : bool
        Whether to write event files into ``tensorboard`` in that folder, too.

    Returns
    -------
    Observation
        A context manager, which gives an `ObservationReport`: ``rows``, ``worst(n)``, ``first_bad``; ``print(report)``
        shows a table.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.
    RuntimeError
        When it is entered inside another one.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {model!r}, must be a torch.nn.Module")
    if not isinstance(folder, str | Path | None):
        raise TypeError(f"folder: got {folder!r}, must be a path or None")
    if "\0" in str(folder):
        raise ValueError(f"folder: got {folder!r}, must be a path, without a zero character")
    settings = ObservationSettings(every, rows, tensorboard)
    if tensorboard and folder is None:
        raise ValueError("folder: got None, must be a folder when tensorboard is True")
    return Observation(model, settings, None if folder is None else Path(folder))


class Observation:
    """The observation of a run; `observe` makes one.

    Parameters
    ----------
    model : nn.Module
    settings : ObservationSettings
    folder : Path or None
    step : int
        Steps trained already.
    is_led : bool
        Whether `begin_step` and `end_step` are called, by the Trainer; else an optimizer or a scaler ends a step.
    precision : Settings, optional
        What the first line of the file tells, unless the first product does.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: ObservationSettings,
        folder: Path | None,
        *,
        step: int = 0,
        is_led: bool = False,
        precision: Settings | None = None,
    ) -> None:
        self.report = ObservationReport()
        self._model, self._settings, self._folder = model, settings, folder
        self._is_led, self._precision = is_led, precision
        self._step = step  # those that are done
        self._begun = self._has_begun = False  # the step, the run
        self._observer: Observer | None = None
        self._out_of_turn: int | None = None  # the step that is observed though it is not its turn
        self._file: ObservationFile | None = None
        self._board: Board | None = None
        self._trial = LevelTrial(model)
        self._hook: Any = None
        self._clear()

    def _clear(self) -> None:
        self._loss: float | None = None
        self._scale: float | None = None
        self._skipped_before = 0
        self._skipped = False

    def __enter__(self) -> ObservationReport:
        if scopes.observation is not None:
            raise RuntimeError("observe: another observation is under way in this thread, must end first")
        if self._folder is not None and rank() == 0:
            self._file = ObservationFile(self._folder, self._step)
            for row in self._file.kept:
                self.report.add(row)
            if self._settings.tensorboard:
                self._board = Board(self._folder / "tensorboard", self._step)
        scopes.observation = self
        if not self._is_led:
            mine = set(map(id, self._model.parameters()))

            def stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
                if scopes.observation is self and self._scale is None and _has_any_of(mine, optimizer):
                    self.end_step(self._loss)

            self._hook = register_optimizer_step_post_hook(stepped)
            self.begin_step()
        return self.report

    def __exit__(self, error: object, *_: object) -> None:
        scopes.observation = scopes.observer = self._observer = None
        if self._hook is not None:
            self._hook.remove()
        self._trial.stop()
        if error is None and world_size() == 1:
            self._try_levels()
        for each in (self._file, self._board):
            if each is not None:
                each.close()

    def begin_step(self) -> None:
        """Begin a step, unless one has begun."""
        if self._begun:
            return
        self._begun = True
        number = self._step + 1
        if (number - 1) % self._settings.every == 0 or number == self._out_of_turn:
            scopes.observer = self._observer = Observer(self._model, number, self._settings.rows)
            self._trial.watch()

    def note_scaled(self, loss: Tensor, scale: float, skipped_steps: int) -> None:
        """Take a loss, the scale that it is multiplied by, and how many steps have been skipped before."""
        if self._scale is None:
            self._loss, self._skipped_before = None, skipped_steps
        self._scale = scale
        self._add_loss(loss)

    def note_backward(self, roots: Iterable[Any]) -> None:
        """Note the tensors at which a backward pass begins: losses, unless a scaler has noted them."""
        # A reentrant checkpoint runs one within another, which begins with no loss.
        if self._scale is None and torch._C._current_graph_task_id() < 0:
            for each in roots:
                if isinstance(each, Tensor):
                    self._add_loss(each)

    def _add_loss(self, loss: Tensor) -> None:
        if loss.numel() == 1 and not loss.is_complex():
            self._loss = (self._loss or 0.0) + float(loss.detach())

    def note_update(self, skipped_steps: int) -> None:
        """Take the end of an iteration of a gradient scaler."""
        if self._scale is not None:
            self._skipped = skipped_steps > self._skipped_before
            if not self._is_led:
                self.end_step(self._loss)

    def end_step(self, loss: float | None) -> None:
        """Write the rows of the step, and begin the next one."""
        self._step += 1
        observer, scopes.observer, self._observer = self._observer, None, None
        is_number = loss is not None and math.isfinite(loss)
        row = StepRow(
            step=self._step,
            loss=loss if is_number else None,
            loss_scale=self._scale,
            skipped=self._skipped,
            finite=(loss is None or is_number) and not self._skipped,
            observed=observer is not None,
        )
        self._trial.settle(is_good=loss is None or is_number)
        rows: list[Row] = [] if observer is None else self._rows_of(observer)
        if rank() == 0:
            first = [] if self._has_begun else [self._run_row(observer)]
            self._has_begun = True
            self._tell([*first, *rows, row])
        # Losses of several processes differ; whether a step is skipped does not.
        is_bad = self._skipped or (world_size() == 1 and not row.finite)
        if is_bad and (self._out_of_turn is None or self._step >= self._out_of_turn + self._settings.every):
            self._out_of_turn = self._step + 1
        self._clear()
        self._begun = False
        if not self._is_led:
            self.begin_step()

    def _rows_of(self, observer: Observer) -> list[Row]:
        observer.settle()
        tallies = merged(observer.tallies)
        products: list[Row] = [tally.row(key, observer.step) for key, tally in tallies.items()]
        bad: dict[tuple[str, str], FirstBadRow] = {}
        for (module, direction, operation), tally in tallies.items():
            cause = cause_of(tally)
            if cause is None or self.report.is_bad(module, direction) or (module, direction) in bad:
                continue
            where = {"step": observer.step, "module": module, "pass": direction}
            evidence = {"operation": operation, **cause.evidence}
            bad[module, direction] = FirstBadRow.model_validate({**where, "cause": cause.words, "evidence": evidence})
        return [*products, *bad.values()]

    def _tell(self, rows: list[Row]) -> None:
        for row in rows:
            self.report.add(row)
        if self._file is not None:
            self._file.write(rows)
        if self._board is not None:
            self._board.write(rows)

    def _try_levels(self) -> None:
        """Try the levels that the report advises, if it advises any."""
        levels = self.report.new_levels()
        row = self._trial.try_levels(levels, self._step) if levels else None
        if row is not None:
            self._tell([row])

    def _run_row(self, observer: Observer | None) -> RunRow:
        settings = self._precision or (None if observer is None else observer.precision)
        if settings is None:
            settings = Settings(current_half(), model_level(), DEFAULT_CHUNK, enabled=True)
        half, level, chunk, rule = settings.half, settings.level, settings.chunk, settings.rule
        reduction = plan_of(half, level, level, chunk, rule).reduction
        model = getattr(self._model, "_orig_mod", self._model)
        return RunRow(
            model=type(model).__name__,
            half=half.name,
            level=level,
            chunk=chunk,
            rounding=str(reduction.rounding),
            reduction=str(reduction),
            every=self._settings.every,
            modules=[name for name, _ in model.named_modules()],
            cbfloat=__version__,
            torch=torch.__version__,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _has_any_of(parameters: set[int], optimizer: Optimizer) -> bool:
    return any(id(each) in parameters for group in optimizer.param_groups for each in group["params"])
