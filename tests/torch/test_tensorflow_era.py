"""Calls of the TensorFlow era are errors that name the counterpart."""

import pytest
import torch

import golden.torch as cstorch


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (({"optimizer_type": "sgd"},), {"tf_summary": False, "mixed_precision": True}),
        ((), {"params": {"optimizer_type": "sgd"}}),
    ],
)
def test_trainer_of_tensorflow_names_the_counterparts(args, kwargs):
    with pytest.raises(TypeError, match=r"^params: got a dictionary.*configure_optimizer.*MixedPrecision.*fit"):
        cstorch.Trainer(*args, **kwargs)


def test_build_train_ops_names_optimizer_step():
    model = torch.nn.Linear(2, 2)
    trainer = cstorch.Trainer(model, torch.optim.SGD(model.parameters(), lr=1.0))
    with pytest.raises(TypeError, match=r"^build_train_ops: .*optimizer_step\(loss, optimizer, grad_scaler\)"):
        trainer.build_train_ops(torch.zeros(()))
