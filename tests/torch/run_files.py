"""Run files in both forms of the Model Zoo, and the command line in this process."""

import csv
from pathlib import Path

import pytest

from golden.torch.training.commands.line import main

ROOT = Path(__file__).resolve().parents[2]
MODELS = f"{__package__}.run_models"
NEWER = f"""
trainer:
  init:
    seed: 1
    device: CPU
    model: {{name: "{MODELS}:Zoo", hidden: 8}}
    optimizer: {{SGD: {{learning_rate: 0.1, momentum: 0.9}}}}
    schedulers: [{{StepLR: {{step_size: 2, gamma: 0.5}}}}]
    precision: {{fp16_type: cbfloat16, loss_scaling_factor: dynamic, initial_loss_scale: 1024.0}}
    loop: {{max_steps: 6, eval_frequency: 3, grad_accum_steps: 2}}
    checkpoint: {{steps: 2, keep: 2}}
    logging: {{log_steps: 2}}
    loggers: [{{TensorBoardLogger: {{}}}}, ProgressLogger]
    callbacks: [{{CheckLoss: true}}, {{KeepNCheckpoints: false}}]
  fit:
    train_dataloader: {{data_processor: "{MODELS}:data", examples: 24, batch_size: 4, shuffle: true}}
    val_dataloader: &validation {{data_processor: "{MODELS}:Processor", batch_size: 5}}
  validate: {{val_dataloader: *validation}}
"""
OLDER = f"""
runconfig: {{max_steps: 6, precision_opt_level: 2, checkpoint_steps: 3, log_steps: 1, num_csx: 1, seed: 2}}
model: {{name: "{MODELS}:Typed", hidden: 8, mixed_precision: true, fp16_type: cbfloat16}}
optimizer:
  optimizer_type: AdamW
  learning_rate: 1e-3
  weight_decay_rate: 0.1
  beta1: 0.8
  loss_scaling_factor: dynamic
  initial_loss_scale: 1024.0
train_input: {{data_processor: "{MODELS}:Processor", batch_size: 5, to_float16: true}}
eval_input: {{data_processor: "{MODELS}:Processor", batch_size: 24}}
"""


def call(command, path, folder, *arguments):
    return main([command, path, "--model-dir", str(folder), "--no-progress", *arguments])


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        call(*arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


def log(folder):
    with (folder / "log.csv").open() as file:
        return [(int(row["step"]), float(row["loss"])) for row in csv.DictReader(file)]
