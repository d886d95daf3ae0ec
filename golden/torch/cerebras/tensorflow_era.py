"""``Trainer(params, tf_summary, mixed_precision)`` of the TensorFlow era: an error that names the counterparts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["NotOfTensorFlow"]

_COUNTERPARTS = (
    "params: got a dictionary, or a name of the TensorFlow era; here, Trainer takes the model and an optimizer: "
    "optimizer = cstorch.optim.configure_optimizer(...) for optimizer_type and its settings, "
    "cstorch.MixedPrecision(fp16_type, loss_scaling_factor, ...) for mixed_precision and loss scaling, then "
    "cstorch.Trainer(model, optimizer, loss, precision).fit(...)"
)


class NotOfTensorFlow:
    """The base of the trainer, which tells calls of the TensorFlow era what to do instead."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse the parameters of that era, before anything else sees them."""
        if (args and isinstance(args[0], Mapping)) or {"params", "tf_summary", "mixed_precision"} & kwargs.keys():
            raise TypeError(_COUNTERPARTS)
        return super().__new__(cls)

    def build_train_ops(self, total_loss: object) -> NoReturn:
        """Refuse to build a graph.

        Raises
        ------
        TypeError
            Always; it names the counterpart.
        """
        raise TypeError(
            "build_train_ops: there is no graph to build; call trainer.fit(...), or in a loop of one's own "
            "cstorch.amp.optimizer_step(loss, optimizer, grad_scaler)"
        )
