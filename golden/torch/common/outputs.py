"""What models return: outputs under names, and the loss among them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

__all__ = ["loss_of", "outputs_of"]


def outputs_of(result: Any) -> dict[str, Any]:
    """Return what a model returned as a dictionary: a loss, a pair of loss and outputs, or a dictionary already."""
    if isinstance(result, Tensor):
        return {"loss": result} if result.numel() == 1 else {"output": result}
    if isinstance(result, dict):
        return result
    if isinstance(result, (list, tuple)) and result:
        return {"loss": result[0], "logits": result[1] if len(result) == 2 else result[1:]}
    return {"output": result}


def loss_of(outputs: dict[str, Any]) -> Tensor:
    """Return the loss among the outputs of a model.

    Raises
    ------
    ValueError
        If there is no loss, or it is not a tensor of one element.
    """
    loss = outputs.get("loss", outputs.get("output"))
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        got = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        raise ValueError(f"loss: got {got}, must be a tensor of one element")
    return loss
