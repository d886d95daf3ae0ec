"""An evaluation: weights from a checkpoint, metrics over the batches."""

import cerebras.pytorch as cstorch
import torch
from torch import nn

CHECKPOINT = globals()["CHECKPOINT"]

cstorch.amp.set_half_dtype("bfloat16")
backend = cstorch.backend("CPU")


class Model(nn.Module):
    """Two layers and their metrics."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 3)
        self.accuracy_metric = cstorch.metrics.AccuracyMetric(name="eval/accuracy")
        self.perplexity_metric = cstorch.metrics.PerplexityMetric(name="eval/lm_perplexity")

    def forward(self, batch):
        """Give the loss."""
        inputs, labels = batch
        logits = self.fc2(torch.relu(self.fc1(inputs)))
        loss = nn.functional.cross_entropy(logits, labels)
        self.accuracy_metric(labels=labels, predictions=logits.argmax(-1))
        self.perplexity_metric(labels, loss=loss * labels.numel())
        return loss


model = Model()
compiled_model = cstorch.compile(model, "CPU")
model.load_state_dict(cstorch.load(CHECKPOINT)["model"])
compiled_model.eval()
total = []


@cstorch.step_closure
def accumulate(loss):
    """Keep the loss."""
    total.append(loss.item())


@cstorch.trace
@torch.no_grad()
def eval_step(batch):
    """Measure a batch."""
    loss = compiled_model(batch)
    accumulate(loss)
    return loss


def input_fn(num_samples):
    """Make the data."""
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(num_samples, 8, generator=generator)
    data = torch.utils.data.TensorDataset(inputs, inputs[:, :3].argmax(1))
    return torch.utils.data.DataLoader(data, batch_size=16)


executor = cstorch.utils.data.DataExecutor(cstorch.utils.data.DataLoader(input_fn, num_samples=48))
for batch in executor:
    eval_step(batch)
results = {name: float(metric) for name, metric in cstorch.metrics.get_all_metrics()}
