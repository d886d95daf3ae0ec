"""Small trainings by hand, for the tests of observe."""

import contextlib

import torch
from torch import nn

import golden.torch as cstorch


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def batch(seed=1, rows=8, width=6, classes=3):
    fixed = torch.Generator().manual_seed(seed)
    return torch.randn(rows, width, generator=fixed), torch.randint(classes, (rows,), generator=fixed)


def train(model, steps, *, every=None, loss_of=None, half="cbfloat16", scale="dynamic", level=1, **observing):
    """Train for some steps, and observe them if `every` is given; return the report and the bits of the weights."""
    torch.manual_seed(3)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    scaler = cstorch.amp.GradScaler(scale)
    precision = cstorch.precision(half, level=level)
    looking = contextlib.nullcontext() if every is None else cstorch.observe(model, every, **observing)
    with looking as report:
        for step in range(steps):
            optimizer.zero_grad()
            with precision:
                if loss_of is None:
                    inputs, targets = batch(step)
                    loss = nn.functional.cross_entropy(model(inputs), targets)
                else:
                    loss = loss_of(model)
                scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return report, [each.detach().view(torch.int32).tolist() for each in model.parameters()]


def places(report, step=1):
    """Return the products of a step: (module, pass, operation) -> calls."""
    return {(row.module, row.direction, row.operation): row.calls for row in report.rows if row.step == step}
