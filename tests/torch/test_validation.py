"""A validation leaves the training as it was: modes, random generators, and the checkpoint of that time."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from golden.torch import Trainer, metrics
from golden.torch.training.callback import Callback
from golden.torch.training.loop import TrainingLoop

from .runs import PRECISION, Noisy, bits, model, run

LOOP = TrainingLoop(max_steps=7, eval_frequency=2)


def trained(val=None, loader=None, callbacks=()):
    trainer, data = run(None, loader=loader, loop=LOOP, callbacks=[*callbacks])
    return trainer.fit(data, val), bits(trainer)


def validation_data():
    return DataLoader(Noisy(), batch_size=5, shuffle=True)


class Scored(nn.Module):
    """Counts the right answers of the model, and of one that always says 0."""

    def __init__(self):
        super().__init__()
        self.inner, self.mine, self.zero = model(), metrics.AccuracyMetric(), metrics.AccuracyMetric()

    def forward(self, batch):
        found = self.inner(batch[0])
        if not self.training:
            self.mine(batch[1], found.argmax(-1))
            self.zero(batch[1], torch.zeros_like(batch[1]))
        return nn.functional.cross_entropy(found, batch[1])


def test_validation_with_two_metrics_of_one_kind_reports_and_resets_both():
    scored = Scored()
    trainer = Trainer(scored, torch.optim.SGD(scored.parameters(), lr=0.1), None, PRECISION, progress=False)
    for _ in range(2):
        found = trainer.validate(validation_data())
        assert sorted(found) == ["AccuracyMetric.0", "AccuracyMetric.1", "val_loss"]
        assert found["AccuracyMetric.1"] == pytest.approx(0.4)  # of the classes 0, 1, 2, 0, ... of ten examples
        assert (scored.mine.num_updates, scored.zero.num_updates) == (2, 2)


class Frozen(Callback):
    """Keeps the dropout of the model from dropping anything out."""

    def on_train_start(self, trainer, model, *_):
        model[2].eval()


def test_validation_leaves_a_part_of_the_model_that_is_in_evaluation_mode_there():
    assert trained(validation_data(), callbacks=[Frozen()]) == trained(callbacks=[Frozen()]) != trained()


@pytest.mark.parametrize("shuffle", [False, True])
def test_validation_with_the_generator_of_the_training_data_changes_no_bit(shuffle):
    def with_one_generator(validates):
        one = torch.Generator().manual_seed(3)
        val = DataLoader(Noisy(), batch_size=5, shuffle=shuffle, generator=one)
        return trained(val if validates else None, DataLoader(Noisy(), batch_size=3, shuffle=True, generator=one))

    assert with_one_generator(validates=True) == with_one_generator(validates=False)


class Evaluates(Callback):
    def __init__(self):
        self.modes = []

    def on_train_step_end(self, trainer, model, outputs, batch):
        trainer.evaluate(validation_data(), lambda outputs, targets: (outputs.argmax(-1) == targets).float())
        self.modes.append([each.training for each in model.modules()])


def test_evaluate_within_a_run_changes_no_bit():
    evaluates = Evaluates()
    assert trained(callbacks=[evaluates, Frozen()]) == trained(callbacks=[Frozen()])
    assert evaluates.modes == [[True, True, True, False, True]] * 7


class Fails(Callback):
    def __init__(self, hook):
        setattr(self, hook, self.fail)

    def fail(self, *_):
        raise LookupError


@pytest.mark.parametrize("hook", ["on_validate_start", "on_validate_batch_end", "on_validate_end"])
def test_validation_that_ends_with_an_error_leaves_the_model_in_training(hook):
    trainer, _ = run(None, callbacks=[Fails(hook)])
    before = torch.get_rng_state()
    with pytest.raises(LookupError):
        trainer.validate(validation_data())
    assert all(each.training for each in trainer.model.modules())
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(KeyError):
        trainer.evaluate(validation_data(), lambda outputs, targets: {}["no measure"])
    assert trainer.model.training


class SavesAfterValidation(Callback):
    def on_validate_end(self, trainer, model, loop):
        assert not model.training
        assert not torch.is_grad_enabled()
        trainer.save_checkpoint()


def test_run_resumed_from_a_checkpoint_saved_after_a_validation_equals_an_uninterrupted_one(tmp_path):
    whole, data = run(tmp_path / "whole", loop=LOOP, callbacks=[SavesAfterValidation()])
    expected = whole.fit(data, validation_data())[4:], bits(whole)
    second, data = run(tmp_path / "run", loop=LOOP)
    path = tmp_path / "whole" / "checkpoints" / "step_00000004"
    assert (second.fit(data, validation_data(), resume=path), bits(second)) == expected
