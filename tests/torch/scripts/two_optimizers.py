"""Two optimizers with schedules of learning rate and weight decay, one scaler, no data executor."""

import cerebras.pytorch as cstorch
import torch
from torch import nn

cstorch.amp.set_half_dtype("float16")
cstorch.backend("CSX")
model = cstorch.compile(nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 1)), "CSX")
matrices = cstorch.optim.Muon([model[0].weight], lr=0.02)
others = cstorch.optim.Adam(
    [{"params": [model[2].weight], "tags": "head"}, {"params": [model[2].bias]}], lr=0.1, weight_decay=0.01
)
schedulers = [
    cstorch.optim.lr_scheduler.ConstantLR(matrices, 0.02),
    cstorch.optim.lr_scheduler.PiecewiseConstantLR(others, [0.1, 0.05], [4], param_group_tags="head"),
    cstorch.optim.weight_decay_scheduler.CosineDecayWD(matrices, 0.01, 0.0, 6),
]
grad_scaler = cstorch.amp.GradScaler("dynamic", initial_loss_scale=2.0**12, max_gradient_norm=10.0)
seen = []


@cstorch.step_closure
def show(loss, rate):
    """Keep the values."""
    seen.append((float(loss), float(rate)))


@cstorch.trace
def training_step(inputs, targets):
    """Make a step."""
    loss = (model(inputs) - targets).square().mean()
    grad_scaler.scale(loss).backward()
    for optimizer in (matrices, others):
        grad_scaler.step(optimizer)
    grad_scaler.update()
    for optimizer in (matrices, others):
        optimizer.zero_grad()
    for scheduler in schedulers:
        scheduler.step()
    show(loss, schedulers[1].get_last_lr()[0])
    return loss


generator = torch.Generator().manual_seed(9)
inputs = torch.randn(16, 6, generator=generator)
targets = inputs.sum(1, keepdim=True)
for _ in range(8):
    training_step(inputs, targets)
