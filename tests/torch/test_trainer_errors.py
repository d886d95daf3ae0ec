"""Errors in the middle of a run: a run goes on from the end of a step, and never from its middle."""

import pytest
import torch
from torch.optim.lr_scheduler import StepLR

from golden.torch import MixedPrecision
from golden.torch.training.callback import Callback
from golden.torch.training.loop import TrainingLoop

from .runs import bits, run

RANDOM = MixedPrecision(
    fp16_type="cbfloat16", precision_opt_level=2, loss_scaling_factor="dynamic", rounding="stochastic", seed=6
)


def trainer_of(folder, *callbacks, accumulated=1):
    return run(
        folder,
        precision=RANDOM,
        callbacks=[*callbacks],
        schedulers=[lambda optimizer: StepLR(optimizer, 2)],
        loop=TrainingLoop(max_steps=5, eval_frequency=2, grad_accum_steps=accumulated),
        checkpoint_steps=None if folder is None else 1,
    )


class At(Callback):
    """Performs an action once, in a hook after `step` steps."""

    def __init__(self, hook, step, action):
        self.step, self.action = step, action
        setattr(self, hook, self.act)

    def act(self, trainer, *_):
        if trainer.step == self.step and self.action is not None:
            action, self.action = self.action, None
            action(trainer)


class Stopped(Exception):
    pass


def fail(trainer):
    raise Stopped


def interrupt(trainer):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("hook", "action"),
    [
        ("on_before_backward", fail),
        ("on_after_backward", interrupt),
        ("on_before_optimizer_step", fail),
        ("on_after_optimizer_step", interrupt),
    ],
)
def test_run_resumed_by_its_trainer_after_an_error_within_a_step_equals_an_uninterrupted_one(tmp_path, hook, action):
    whole, data = trainer_of(tmp_path / "whole")
    expected = whole.fit(data, data)[2:], bits(whole)
    trainer, data = trainer_of(tmp_path / "run", At(hook, 2, action))
    with pytest.raises((Stopped, KeyboardInterrupt)):
        trainer.fit(data, data)
    assert (trainer.fit(data, data, resume=True), bits(trainer)) == expected


def test_fit_after_an_error_within_a_step_goes_on_without_a_checkpoint():
    trainer, data = trainer_of(None, At("on_before_optimizer_step", 2, fail), accumulated=2)
    with pytest.raises(Stopped):
        trainer.fit(data)
    assert len(trainer.fit(data)) == 3
    assert trainer.step == 5


MIDDLE = {
    "on_train_batch_start": "step 3",
    "on_before_forward": "step 3",
    "on_after_backward": "step 3",
    "on_after_optimizer_step": "step 3",
    "on_validate_batch_end": "a validation",
}


@pytest.mark.parametrize("hook", MIDDLE)
def test_checkpoint_in_the_middle_of_a_step_or_validation_is_refused(tmp_path, hook):
    trainer, data = trainer_of(tmp_path, At(hook, 2, lambda trainer: trainer.save_checkpoint()))
    if hook == "on_before_forward":  # which a validation calls, too
        trainer.loop = TrainingLoop(max_steps=5, eval_frequency=0)
    with pytest.raises(RuntimeError, match=f"^save_checkpoint: {MIDDLE[hook]} is not complete"):
        trainer.fit(data, data)


def test_checkpoint_between_the_batches_of_a_step_is_refused(tmp_path):
    trainer, data = trainer_of(
        tmp_path, At("on_train_batch_end", 0, lambda trainer: trainer.save_checkpoint()), accumulated=2
    )
    with pytest.raises(RuntimeError, match=r"^save_checkpoint: step 1 is not complete, .* on_train_step_end once "):
        trainer.fit(data)
    with pytest.raises(RuntimeError, match=r"^save_checkpoint: step 1 is not complete"):
        trainer.save_checkpoint()


@pytest.mark.parametrize("hook", ["on_train_start", "on_train_end", "on_train_batch_end", "on_validate_start"])
def test_checkpoint_that_a_callback_saves_between_steps_is_one_to_go_on_from(tmp_path, hook):
    step = 4  # an epoch has 4 batches
    whole, data = trainer_of(tmp_path / "whole", At(hook, step, lambda trainer: trainer.save_checkpoint()))
    expected = whole.fit(data, data)[step:], bits(whole)
    second, data = trainer_of(tmp_path / "run")
    path = tmp_path / "whole" / "checkpoints" / f"step_{step:08}"
    assert (second.fit(data, data, resume=path), bits(second)) == expected


def test_checkpoint_saved_again_before_the_first_step_of_a_resumed_run_is_the_same(tmp_path):
    whole, data = trainer_of(tmp_path / "whole")
    expected = whole.fit(data), bits(whole)
    first, data = trainer_of(tmp_path / "run")
    before = first.fit(data, steps=3)
    again, data = trainer_of(tmp_path / "run", At("on_fit_start", 3, lambda trainer: trainer.save_checkpoint()))
    torch.manual_seed(98)
    before += again.fit(data, steps=4, resume=True)
    third, data = trainer_of(tmp_path / "run")
    path = tmp_path / "run" / "checkpoints" / "step_00000003"
    assert (before[:3] + third.fit(data, resume=path), bits(third)) == expected
