"""A training loop in the style of the older releases: everything by name, one call for a step, summaries."""

import cerebras.pytorch as cstorch
import torch
from torch import nn

MODEL_DIR, WRITER = globals()["MODEL_DIR"], globals()["WRITER"]

torch.manual_seed(2023)
cstorch.amp.set_half_dtype("cbfloat16")
backend = cstorch.backend("CSX", artifact_dir=MODEL_DIR, compile_dir="./compile_dir", compile_only=False)
cs_config = cstorch.utils.CSConfig(num_workers_per_csx=1, max_wgt_servers=1, precision_opt_level=0)

with backend.device:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
model = cstorch.compile(model, backend)
loss_fn = torch.nn.CrossEntropyLoss()
optimizer = cstorch.optim.configure_optimizer(optimizer_type="SGD", params=model.parameters(), lr=0.01, momentum=0.9)
lr_params = {"scheduler": "Linear", "initial_learning_rate": 0.05, "end_learning_rate": 0.001, "total_iters": 8}
lr_scheduler = cstorch.optim.configure_lr_scheduler(optimizer, lr_params)
grad_scaler = cstorch.amp.GradScaler(loss_scale="dynamic")
losses, rates = [], []


@cstorch.step_closure
def accumulate_loss(loss):
    """Keep the loss."""
    losses.append(loss.item())


@cstorch.step_closure
def save_learning_rate():
    """Keep the learning rate."""
    rates.append(lr_scheduler.get_last_lr()[0].item())


@cstorch.compile_step
def training_step(batch):
    """Make a step."""
    inputs, targets = batch
    loss = loss_fn(model(inputs), targets)
    cstorch.amp.optimizer_step(loss, optimizer, grad_scaler, max_gradient_norm=1.0)
    lr_scheduler.step()
    save_learning_rate()
    accumulate_loss(loss)
    cstorch.summarize_scalar("loss", loss)
    return loss


def input_fn(batch_size):
    """Make the data."""
    generator = torch.Generator().manual_seed(5)
    images = torch.randn(12, 1, 6, 6, generator=generator)
    labels = (images.mean((1, 2, 3)) > 0).long()
    return list(zip(images.split(batch_size), labels.split(batch_size), strict=True))


dataloader = cstorch.utils.data.DataLoader(input_fn, 4)
executor = cstorch.utils.data.DataExecutor(
    dataloader, num_steps=9, checkpoint_steps=5, writer=WRITER, cs_config=cs_config
)
for _, batch in enumerate(executor):
    training_step(batch)
