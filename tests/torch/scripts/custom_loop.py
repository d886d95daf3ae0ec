"""A training loop in the style of the newer releases: cluster configuration, explicit gradient scaling, checkpoints."""

import cerebras.pytorch as cstorch
import torch
import torch.nn.functional as F
from torch import nn

MODEL_DIR, NUM_STEPS = globals()["MODEL_DIR"], 12

cstorch.amp.set_half_dtype("cbfloat16")
cstorch.backends.csx.precision.optimization_level = 2
cluster = cstorch.distributed.ClusterConfig(num_csx=1, num_workers_per_csx=1, mount_dirs=["/data"])
backend = cstorch.backend("CSX", artifact_dir=MODEL_DIR, compile_dir="compile", cluster_config=cluster)


class Model(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 3)

    def forward(self, inputs):
        """Give the logarithms of the shares."""
        return F.log_softmax(self.fc2(F.relu(self.fc1(inputs))), dim=1)


with backend.device:
    model = Model()
compiled_model = cstorch.compile(model, backend)
loss_fn = nn.NLLLoss()
optimizer = cstorch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
lr_scheduler = cstorch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        cstorch.optim.lr_scheduler.LinearLR(optimizer, 0.01, 0.05, total_iters=4),
        cstorch.optim.lr_scheduler.CosineDecayLR(optimizer, 0.05, 0.01, total_iters=8),
    ],
    milestones=[4],
)
grad_scaler = cstorch.amp.GradScaler(loss_scale="dynamic")


def input_fn(batch_size):
    """Make the data."""
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(40, 8, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))
    return torch.utils.data.DataLoader(data, batch_size=batch_size, drop_last=True)


@cstorch.trace
def training_step(inputs, targets):
    """Make a step."""
    outputs = compiled_model(inputs)
    loss = loss_fn(outputs, targets)
    optimizer.zero_grad()
    grad_scaler.scale(loss).backward()
    grad_scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=1.0)
    grad_scaler.step(optimizer)
    grad_scaler.update()
    lr_scheduler.step()
    return loss


losses, rates, saved = [], [], []


@cstorch.step_closure
def post_step(loss):
    """Look at the loss."""
    assert not torch.isnan(loss).any()
    losses.append(loss.item())
    rates.append(float(lr_scheduler.get_last_lr()[0]))


@cstorch.checkpoint_closure
def save_checkpoint(step):
    """Save everything."""
    path = f"{MODEL_DIR}/checkpoint_{step}.mdl"
    cstorch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "lr_scheduler": lr_scheduler.state_dict(),
            "grad_scaler": grad_scaler.state_dict(),
            "global_step": step,
        },
        path,
    )
    saved.append(path)


save_checkpoint(0)
dataloader = cstorch.utils.data.DataLoader(input_fn, batch_size=10)
executor = cstorch.utils.data.DataExecutor(dataloader, num_steps=NUM_STEPS, checkpoint_steps=5)
for step, (inputs, targets) in enumerate(executor, start=1):
    loss = training_step(inputs, targets)
    post_step(loss)
    save_checkpoint(step)
