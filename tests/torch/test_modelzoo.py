"""golden.modelzoo has the names of the Model Zoo's trainer, which lead to golden.torch."""

import importlib

import pytest
import torch
from torch import nn

import golden.torch as cstorch
from golden.modelzoo import Trainer
from golden.modelzoo.trainer.callbacks import Checkpoint, KeepNCheckpoints, Logging, MixedPrecision, TrainingLoop
from golden.modelzoo.trainer.loggers import TensorBoardLogger

from .run_models import Net, data


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("golden.modelzoo", "Trainer"),
        ("golden.modelzoo.trainer", "Trainer"),
        (
            "golden.modelzoo.trainer.callbacks",
            "Callback CheckLoss Checkpoint KeepNCheckpoints Logging MixedPrecision TrainingLoop ValidationLoop",
        ),
        ("golden.modelzoo.trainer.loggers", "Logger ProgressLogger TensorBoardLogger"),
    ],
)
def test_names_of_the_model_zoo_are_there(module, names):
    loaded = importlib.import_module(module)
    for name in names.split():
        assert name in loaded.__all__
        given = getattr(loaded, name)
        assert given is getattr(cstorch, name, given)


class Measured(nn.Module):
    """Gives its loss, and its accuracy when it is validated, as the models of the Model Zoo do."""

    def __init__(self):
        super().__init__()
        self.net, self.accuracy = Net(), cstorch.metrics.AccuracyMetric(name="accuracy")

    def forward(self, batch):
        inputs, labels = batch
        outputs = self.net(inputs)
        if not self.training:
            self.accuracy(labels=labels.clone(), predictions=outputs.argmax(-1).int())
        return nn.functional.cross_entropy(outputs, labels)


def test_script_of_the_model_zoo_trains_validates_and_goes_on_by_itself(tmp_path):
    def fit():
        trainer = Trainer(
            backend=cstorch.backend("CSX"),
            model_dir=tmp_path,
            model=Measured,
            optimizer=lambda model: cstorch.optim.AdamW(model.parameters(), lr=0.01),
            schedulers=[
                lambda optimizer: cstorch.optim.lr_scheduler.LinearLR(
                    optimizer, initial_learning_rate=0.01, end_learning_rate=0.0, total_iters=12
                )
            ],
            precision=MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic"),
            loop=TrainingLoop(num_epochs=2, eval_frequency=6),
            checkpoint=Checkpoint(steps=3),
            logging=Logging(log_steps=4),
            callbacks=[KeepNCheckpoints(n=2)],
            loggers=[TensorBoardLogger()],
            seed=1,
            progress=False,
        )
        train = cstorch.utils.data.DataLoader(lambda: torch.utils.data.DataLoader(data(), 4, shuffle=True))
        validation = cstorch.utils.data.DataLoader(lambda: torch.utils.data.DataLoader(data(seed=5), 4))
        return len(trainer.fit(train, validation)), trainer.validate(validation), trainer.optimizer

    steps, result, optimizer = fit()
    assert steps == 12
    assert float(optimizer.param_groups[0]["lr"]) == 0.0
    assert result.keys() == {"val_loss", "accuracy"}
    assert sorted(each.name for each in (tmp_path / "checkpoints").iterdir()) == ["step_00000009", "step_00000012"]
    with pytest.warns(UserWarning, match=r"^loop.num_epochs: got 2 for a run that has made 2 epochs already"):
        assert fit()[:2] == (0, result)
