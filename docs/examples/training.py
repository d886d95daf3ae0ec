"""
Training with the loss scaler
=============================

You train a small network on handwritten digits, with every matrix product as the
hardware computes it, and watch the loss scale find its place.

You need the extra ``train``, and matplotlib for the pictures:
``pip install 'cbfloat[train]' matplotlib``.
"""

# %%
# A model and its data
# --------------------
#
# 1,797 images of 8 × 8 pixels come with scikit-learn. The model is an ordinary
# `torch.nn.Sequential`.
import torch
from torch import nn

import golden.torch as cstorch
from golden.torch.examples.digits import digits

images, targets = digits()
images = images.flatten(1)


def new_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


# %%
# The loop
# --------
#
# `golden.torch.precision` makes every product in it exact: forward, and backward as well.
# The scaler multiplies the loss, so that small gradients do not vanish, and divides the
# gradients again. It skips a step whose gradients are not finite.
def train(half, scaler, steps=100):
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    order = torch.Generator().manual_seed(0)
    losses, scales = [], []
    for _ in range(steps):
        batch = torch.randint(len(images), (128,), generator=order)
        optimizer.zero_grad()
        with cstorch.precision(half=half, level=1):
            loss = nn.functional.cross_entropy(model(images[batch]), targets[batch])
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    return losses, scales


GradScaler = cstorch.amp.GradScaler
runs = {
    "cbfloat16, dynamic": train("cbfloat16", GradScaler("dynamic")),
    "float16, dynamic": train("float16", GradScaler("dynamic")),
    "float16, scale too small: 2^-18": train("float16", GradScaler(2.0**-18)),
}
for name, (losses, _) in runs.items():
    print(f"{name:<32} loss after {len(losses)} steps: {losses[-1]:.4f}")

# %%
# With a scale that is too small, gradients fall below the smallest number of float16, and
# the model does not learn.
from matplotlib import pyplot as plt

figure, axes = plt.subplots(figsize=(7, 3.4))
for (name, (losses, _)), style in zip(runs.items(), ("-", "--", ":"), strict=True):
    axes.plot(losses, style, label=name)
axes.set_xlabel("step")
axes.set_ylabel("loss")
axes.grid(alpha=0.25)
axes.legend(frameon=False)
plt.show()

# %%
# The scale at work
# -----------------
#
# A dynamic scale is halved after a step whose gradients overflow, and doubled after a
# quiet time: 2,000 steps, here 15, so that a short run shows it. It climbs until the
# gradients overflow, steps back, and tries again. The skipped steps cost little; the
# parameters never see an infinity.
scaler = GradScaler(
    "dynamic", init_scale=2.0**14, steps_per_increase=15, max_loss_scale=2.0**40
)
losses, scales = train("float16", scaler, steps=200)
print(f"{scaler.get_num_skipped_steps()} of {len(losses)} steps were skipped.")
print(f"The loss is {losses[-1]:.4f}.")

figure, axes = plt.subplots(figsize=(7, 3.4))
axes.step(range(len(scales)), scales, where="post")
axes.set_yscale("log", base=2)
axes.set_xlabel("step")
axes.set_ylabel("loss scale")
axes.grid(alpha=0.25)
plt.show()

# %%
# Which products are exact?
# -------------------------
#
# All of them, or there is an error. `golden.torch.audit` prints them.
with cstorch.precision(half="cbfloat16", level=1):
    _ = cstorch.audit(new_model(), images[:4])

# %%
# Where to go from here
# ---------------------
#
# - `golden.torch.amp.GradScaler` has all parameters, and NUMERICS section 7 is the rule
#   that they follow.
# - `golden.torch.Trainer` has the loop, checkpoints and loggers; ``python -m golden.torch
#   fit digits_mlp`` runs one from YAML.
