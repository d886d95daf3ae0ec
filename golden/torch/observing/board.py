"""The observations as scalars for TensorBoard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from golden.flags import EVENTS
from golden.torch.observing.rows import ProductRow, Row, StepRow
from golden.torch.utils.tensorboard import SummaryWriter

__all__ = ["Board"]


class Board:
    """Writes an event file.

    Parameters
    ----------
    folder : Path
        Its folder.
    step : int
        Steps trained already; TensorBoard drops what an earlier file tells of later ones.

    Raises
    ------
    ModuleNotFoundError
        If tensorboardX is not installed.
    """

    def __init__(self, folder: Path, step: int) -> None:
        self._writer = SummaryWriter(str(folder), purge_step=step + 1)

    def write(self, rows: Iterable[Row]) -> None:
        """Write the rows of a step: shares of the counted steps, distances, loss and loss scale."""
        for row in rows:
            if isinstance(row, ProductRow):
                self._write_product(row)
            elif isinstance(row, StepRow):
                self._write_step(row)
        self._writer.flush()

    def _write_step(self, row: StepRow) -> None:
        scalars = {"loss": row.loss, "loss_scale": row.loss_scale, "skipped": float(row.skipped)}
        for name, value in scalars.items():
            if value is not None:
                self._writer.add_scalar(f"observe/{name}", value, row.step)

    def _write_product(self, row: ProductRow) -> None:
        place = f"{row.module or 'model'}/{row.direction}/{row.operation.replace(' ', '_')}"
        steps = max(1, row.products.steps + row.promotions.steps)
        for name in (event for event in EVENTS if event != "inexact"):
            share = (getattr(row.products, name) + getattr(row.promotions, name)) / steps
            self._writer.add_scalar(f"observe_{name}/{place}", share, row.step)
        if row.distance is not None:
            self._writer.add_scalar(f"observe_distance/{place}", row.distance.relative, row.step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
