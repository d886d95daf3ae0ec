"""golden.modelzoo has the names of the Model Zoo's trainer, which are those of golden.torch."""

import importlib

import pytest

import golden.torch as cstorch


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
