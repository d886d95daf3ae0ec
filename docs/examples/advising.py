"""
An attention that swamps, and the advisor's remedy
==================================================

A small GPT runs in bfloat16 at level 2, where every sum has 16 bits. One of its layers
loses most of its addends. You see which one, and why, and let the advisor choose the
levels.

You need the extra ``train``, and matplotlib for the pictures:
``pip install 'cbfloat[train]' matplotlib``.
"""

# %%
# Sums that swamp
# ---------------
#
# At level 2, the softmax of attention sums its exponentials in 16 bits. bfloat16 has 8
# significant bits: at 256, adding 1 no longer changes the sum. So the weights of an
# attention that looks at more than 256 positions alike do not sum to 1.
import numpy as np
import torch
from matplotlib import pyplot as plt

import golden
import golden.torch as cstorch
from golden.torch.examples.gpt import CharacterGpt


def sum_of_weights(length, fmt):
    equal = np.zeros(length, np.uint16)  # scores of 0
    return golden.decode(golden.softmax(equal, fmt), fmt).astype(np.float64).sum()


lengths = range(16, 641, 16)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for fmt in (golden.BF16, golden.CBFLOAT16):
    axes.plot(lengths, [sum_of_weights(each, fmt) for each in lengths], label=fmt.name)
axes.set(xlabel="positions with equal scores", ylabel="sum of the weights")
axes.legend()
plt.show()

# %%
# A model that does it
# --------------------
#
# This GPT of one block reads 640 letters at once. Before it has learned anything, its
# attention looks at all of them nearly alike.
torch.manual_seed(1)
task = CharacterGpt(name="character_gpt", layers=1, width=32, heads=1, context=640).task()
batch = tuple(each[None] for each in task.train[0])

# %%
# The advice
# ----------
#
# The advisor runs one step with everything at level 0. Then it runs each layer alone at
# level 1 and at level 2, forward and backward, and measures how far the gradient moves.
# ``blocks.0`` is the attention: its products are in the code of the block itself.
advice = cstorch.advise(
    task.model, [batch], loss=task.loss, precision="bfloat16", budget=0.01, show=False
)
for line in advice.lines():
    print(line)

# %%
# Each layer forward, alone at each level. One bar stands out.
forward = [row for row in advice.rows if row.run == "fwd"]
layers = list(dict.fromkeys(row.layer for row in forward))
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
for level in (1, 2):
    changes = [100 * row.gradient_change for row in forward if row.level == level]
    axes.bar(
        np.arange(len(layers)) + 0.4 * level - 0.6, changes, 0.4, label=f"level {level}"
    )
axes.set_xticks(range(len(layers)), layers, fontsize="small")
axes.axhline(100 * advice.budget["gradient"], color="grey", linestyle=":", label="budget")
axes.set_ylabel("change of the gradient, %")
axes.legend()
plt.show()

# %%
# The remedy
# ----------
#
# The level map keeps the forward pass of the attention at level 1, where bfloat16 takes
# its softmax in fp32. Everything else may run at level 2.
print(advice.yaml())


# %%
# A step with this map, beside one at level 2 throughout: the gradient of the layer that
# makes queries, keys and values shows the difference best.
def gradient(level, levels=None):
    task.model.zero_grad()
    with cstorch.precision("bfloat16", level, levels=levels):
        task.loss(task.model(batch[0]), batch[1]).backward()
    return task.model.blocks[0].qkv.weight.grad.clone()


exact = gradient(0)
for name, found in (("level 2", gradient(2)), ("the advice", gradient(2, advice.levels))):
    print(f"{name}: changed by {((found - exact).norm() / exact.norm()).item():.1%}")

# %%
# A `golden.torch.Trainer` takes the map in ``MixedPrecision(levels=...)``, and a run file
# under ``trainer.init.precision.levels``.
