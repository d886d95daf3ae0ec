"""
Choosing a loss scale by looking
================================

How large should the loss scale be? You look at the gradients of a short run, and read it
off: large enough that they do not vanish, small enough that they do not overflow.

You need the extra ``train``, and matplotlib for the pictures:
``pip install 'cbfloat[train]' matplotlib``.
"""

# %%
# A run that is observed
# ----------------------
#
# The model is the small network of the tutorial on training. It learns in float16, which
# has few exponents. The loss is not scaled at first: its scale is 1.
# `golden.torch.observe` looks into the products of every tenth step, and writes its
# observations into a folder.
import html
import math
import tempfile
from collections import Counter
from pathlib import Path

import torch
from matplotlib import pyplot as plt
from torch import nn

import golden
import golden.torch as cstorch
from golden.torch.examples.digits import digits
from golden.torch.instruments.report.page import write_report

images, targets = digits()
images = images.flatten(1)
runs = Path(tempfile.mkdtemp())


def train(name, scaler, every=10, steps=60):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    order = torch.Generator().manual_seed(0)
    with cstorch.observe(model, every=every, folder=runs / name) as report:
        for _ in range(steps):
            batch = torch.randint(len(images), (128,), generator=order)
            optimizer.zero_grad()
            with cstorch.precision(half="float16", level=1):
                loss = nn.functional.cross_entropy(model(images[batch]), targets[batch])
                scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return report


GradScaler = cstorch.amp.GradScaler
report = train("scale 1", GradScaler(1.0))

# %%
# The gradients, before they are rounded
# --------------------------------------
#
# The gradient of a layer's weight is a product. Its right operand is the gradient that
# comes in from the layer behind; the report has its exponents as they were before they
# were rounded to float16. The result sums over the batch, so it is larger. Both have to
# fit.
exponents = Counter()
for row in report.rows:
    if row.direction == "gradient_of_weight" and row.operation == "linear":
        for tensor in (row.tensors.right, row.tensors.output):
            for exponent, count in tensor.exponents.items():
                exponents[int(exponent)] += count

half = golden.format_named("float16")
figure, axes = plt.subplots(figsize=(7, 3.2))
axes.bar(exponents.keys(), exponents.values(), width=1, color="#2a6f97")
axes.axvline(half.emin - 0.5, color="black", linestyle="--")
axes.text(half.emin, 5e4, "normal →")
axes.set_yscale("log")
axes.set_ylim(0.8, 2e5)
axes.set_xlabel("exponent of a gradient")
axes.set_ylabel("gradients")
axes.grid(alpha=0.25)
plt.show()

below = sum(count for exponent, count in exponents.items() if exponent < half.emin)
print(f"{below / exponents.total():.0%} of the gradients are below the normal numbers.")

# %%
# The window
# ----------
#
# A loss scale of 2\ :sup:`s` moves all of them to the right by s. The smallest good scale
# makes 99 % of the gradients normal. The largest leaves two exponents free above the
# largest gradient, for gradients grow between the steps that were observed.
lost, smallest = 0, min(exponents)
while lost + exponents[smallest] <= 0.01 * exponents.total():
    lost += exponents[smallest]
    smallest += 1
low = half.emin - smallest
high = half.emax - 2 - max(exponents)
print(f"Good scales: 2^{low} to 2^{high}")

# %%
# The picture shows the same: the bars are the gradients, the lines are the normal numbers
# of float16 as the gradients see them with each scale.
figure, axes = plt.subplots(figsize=(7, 3.2))
axes.bar(exponents.keys(), exponents.values(), width=1, color="#2a6f97")
axes.set_yscale("log")
axes.set_ylim(0.8, 30 * max(exponents.values()) ** 1.5)
chosen = {"too small": -16, "smallest": low, "largest": high, "too large": high + 8}
for row, (name, scale) in enumerate(chosen.items()):
    height = max(exponents.values()) * 6 ** (row + 1)
    left, right = half.emin - scale, half.emax - scale
    axes.plot([left, right], [height] * 2, "|-", color="black")
    axes.text(right, height, f"  $2^{{{scale}}}$ {name}", va="center")
axes.set_xlim(half.emin - high - 10, half.emax + 42)
axes.set_yticks([1, 100, 10_000])
axes.set_xlabel("exponent of a gradient")
axes.set_ylabel("gradients")
plt.show()

# %%
# Does it hold?
# -------------
#
# One run with each scale; a look at the first step is enough here. Both ends of the
# window learn alike. The scale below it loses gradients, and the one above it skips its
# steps.
for name, scale in chosen.items():
    steps = train(name, GradScaler(2.0**scale), every=60).steps
    losses = [step.loss for step in steps[-10:] if step.loss is not None]
    skipped = sum(step.skipped for step in steps)
    print(
        f"2^{scale:<3} {name:<10} loss {sum(losses) / len(losses):.3f}, {skipped} skipped"
    )

# %%
# A dynamic scale that begins inside the window needs no search at the beginning of the
# run, and follows the gradients when they change.
middle = 2.0 ** ((low + high) // 2)
report = train("dynamic", GradScaler("dynamic", init_scale=middle))
print(f"2^{math.log2(report.steps[-1].loss_scale):.0f} at the end,", end=" ")
print(sum(step.skipped for step in report.steps), "steps skipped")

# %%
# The page says it, too
# ---------------------
#
# ``python -m golden.torch report RUN`` draws all of this by itself, and more: what to
# change, the worst layers, the timeline. Here it compares the first run with the last.
page = runs / "report.html"
write_report([runs / "scale 1", runs / "dynamic"], page)


class Shown:
    def _repr_html_(self):
        text = html.escape(page.read_text(encoding="utf-8"))
        size = "width: 100%; height: 40rem; border: 1px solid gray"
        return f'<iframe title="Report" style="{size}" srcdoc="{text}"></iframe>'


Shown()

# %%
# Where to go from here
# ---------------------
#
# - The manual has a page about the report, with its limits and rules.
# - `golden.torch.amp.GradScaler` has all parameters, and NUMERICS section 7 is the rule
#   that they follow.
