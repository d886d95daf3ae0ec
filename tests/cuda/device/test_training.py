"""Models, scalers, optimizers and the Trainer on a card: operators are judged, and nothing waits that need not.

On a card in memory the rest of PyTorch has the bits of the CPU, too, so that whole runs are compared.
"""

import copy
import itertools

import pytest
import torch
from torch import nn

import golden
import golden.torch as cstorch
from golden.torch.examples.gpt import CharacterGpt
from golden.torch.examples.python_gpt import PythonGpt, Sizes
from tests.cuda.device.card import IN_MEMORY, waits
from tests.cuda.device.judge import Judge, differing
from tests.zoo.layers import SPECIALS

SIZES = Sizes(layers=1, width=16, heads=2, context=8, batch=2)


def batch(device, width=8):
    codes = torch.randint(0, 100, (2, width + 1), generator=torch.Generator().manual_seed(3)).to(device)
    return codes[:, :-1], codes[:, 1:]


def trained(device, half, *, steps=3, loss_scale="dynamic", make=torch.optim.AdamW, judge=None, **options):
    """Train a small GPT; return its parameters, the scale, and how often a step waited for the card."""
    torch.manual_seed(0)
    model = PythonGpt(SIZES, letters=100).to(device)
    optimizer, scaler = make(model.parameters(), lr=1e-2, **options), cstorch.amp.GradScaler(loss_scale)
    x, y = batch(device)
    waited = []
    with judge or torch.no_grad(), torch.enable_grad():
        for _ in range(steps):
            before = waits()
            optimizer.zero_grad()
            with cstorch.precision(half):
                loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            waited.append(waits() - before)
    return list(model.parameters()), scaler, waited


@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", "float16"])
def test_training_on_a_card_has_exact_products_and_waits_once_a_step(half):
    judge = Judge()
    parameters, scaler, _ = trained("cuda", half, judge=judge)
    assert judge.wrong == []
    assert {name.partition(".")[0] for name in judge.calls} >= {"matrix_product", "rounded"}
    expected, its_scaler, _ = trained("cpu", half)
    assert scaler.get_scale() == its_scaler.get_scale()
    if IN_MEMORY:
        assert [differing(*pair) for pair in zip(parameters, expected, strict=True)] == [None] * len(expected)
        assert trained("cuda", half)[2] == [1, 1, 1]


def test_overflow_on_a_card_skips_the_step_and_says_why():
    before = trained("cuda", "cbfloat16", steps=0)[0]
    parameters, scaler, _ = trained("cuda", "cbfloat16", steps=1, loss_scale=2.0**126)
    assert scaler.get_num_skipped_steps() == 1
    assert "the gradient of" in scaler.get_skip_reason()
    assert [differing(*pair) for pair in zip(parameters, before, strict=True)] == [None] * len(before)


@pytest.mark.parametrize("max_norm", [None, 0.1])
def test_scaler_that_clips_waits_once_a_step(max_norm):
    layer = nn.Linear(4, 4, device="cuda")
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = cstorch.amp.GradScaler(8.0, max_gradient_norm=max_norm)
    with cstorch.precision("cbfloat16"):
        scaler.scale(layer(torch.ones(2, 4, device="cuda")).sum()).backward()
    before = waits()
    scaler.step(optimizer)
    scaler.update()
    assert waits() - before == int(IN_MEMORY)


OPTIMIZERS = [
    getattr(cstorch.optim, name)
    for name in cstorch.optim.__all__
    if isinstance(getattr(cstorch.optim, name), type)
    and issubclass(getattr(cstorch.optim, name), torch.optim.Optimizer)
    and not getattr(getattr(cstorch.optim, name), "__abstractmethods__", None)
]


@pytest.mark.parametrize("make", OPTIMIZERS, ids=lambda make: make.__name__)
def test_every_optimizer_steps_on_a_card(make):
    found = []
    for device in ("cuda", "cpu"):
        weight = nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4).to(device))
        optimizer = make([weight], lr=0.01)
        for step in range(2):
            weight.grad = torch.linspace(1, 2 + step, 12).reshape(3, 4).to(device)
            optimizer.step()
        found.append(weight)
    torch.testing.assert_close(found[0].cpu(), found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", [str(each) for each in golden.Rounding])
@pytest.mark.parametrize("half", ["cbfloat16", "bfloat16", "cb16"])
def test_weights_kept_in_16_bits_are_those_of_the_cpu_and_wait_for_nothing(half, mode):
    values = torch.cat([torch.randn(5000, generator=torch.Generator().manual_seed(6)), torch.tensor(SPECIALS * 50)])
    found = []
    for device in ("cuda", "cpu"):
        # One lies in memory as it is numbered, one transposed, one with gaps; the second has no gradient at first.
        given = [values.clone(), values.reshape(-1, 2).T, values.repeat(2)[::2]]
        weights = [nn.Parameter(each.to(device)) for each in given]
        groups = [{"params": weights[:1]}, {"params": weights[1:], "lr": 2.0**-7}]
        optimizer = torch.optim.SGD(groups, 2.0**-10)  # powers of two: a step is one rounding on every device
        before = waits()
        cstorch.optim.keep_weights(optimizer, half, rounding=mode, seed=4)
        assert waits() == before
        for step in range(3):
            for number, weight in enumerate(weights):
                generator = torch.Generator().manual_seed(number + 10 * step)
                gradient = torch.randn(weight.shape, generator=generator).to(device)
                weight.grad = None if number == 1 and step == 0 else gradient
            before = waits()
            optimizer.step()
            assert waits() == before
        found.append(weights)
    assert [differing(*pair) for pair in zip(*found, strict=True)] == [None] * 3


def run(device, folder, steps, **options):
    task = CharacterGpt(name="character_gpt", layers=1, width=16, heads=2, context=8).task()
    data = [
        tuple(torch.stack(each) for each in zip(*(task.train[i + j] for j in range(2)), strict=True)) for i in (0, 9)
    ]
    torch.manual_seed(0)
    model = CharacterGpt(name="character_gpt", layers=1, width=16, heads=2, context=8).task().model
    trainer = cstorch.Trainer(
        model, torch.optim.AdamW(model.parameters(), lr=1e-2), task.loss,
        cstorch.MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", max_gradient_norm=1.0),
        device=device, model_dir=folder, progress=False, seed=1, observe=2, checkpoint_steps=1,
    )  # fmt: skip
    losses = trainer.fit(data, data[:1], steps=steps, **options)
    return losses, trainer


def test_trainer_with_device_gpu_trains_resumes_and_observes_on_the_card(tmp_path):
    losses, trainer = run("GPU", tmp_path / "card", 3)
    assert {each.device.type for each in trainer.model.parameters()} == {"cuda"}
    again, _ = run("GPU", tmp_path / "parts", 2)
    rest, resumed = run("GPU", tmp_path / "parts", 3, resume=True)
    assert [*again, *rest] == losses
    pairs = zip(trainer.model.parameters(), resumed.model.parameters(), strict=True)
    assert {differing(*pair) for pair in pairs} == {None}
    on_the_cpu, its = run("CPU", tmp_path / "cpu", 3)
    assert losses == on_the_cpu if IN_MEMORY else losses == pytest.approx(on_the_cpu, rel=1e-3)
    rows = [[(row.module, row.direction, row.operation) for row in each.observations.rows] for each in (trainer, its)]
    assert rows[0] == rows[1]


def test_microscaled_training_on_a_card_is_that_of_the_cpu():
    found = []
    for device in ("cuda", "cpu"):
        weight = nn.Parameter(torch.linspace(-1, 1, 40 * 6).reshape(6, 40).to(device))
        optimizer = torch.optim.SGD([weight], 2.0**-6)
        for step in range(3):
            optimizer.zero_grad()
            x = torch.linspace(-3, 2 + step, 40 * 5).reshape(5, 40).to(device)
            with cstorch.precision("bfloat16"):
                before = waits()
                cstorch.mx.linear(x, weight, gradient_element="float8_e5m2").float().sum().backward()
                optimizer.step()
                assert waits() == before
        found.append(weight)
    assert differing(*found) is None


def test_every_product_of_a_model_on_a_card_is_seen_by_the_audit():
    model = PythonGpt(SIZES, letters=100).to("cuda")
    found = cstorch.audit(model, batch("cuda")[0], show=False)
    assert (found.unseen, found.refused) == (0, 0)
    assert found.exact == cstorch.audit(copy.deepcopy(model).cpu(), batch("cpu")[0], show=False).exact


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_packed_recurrence_on_a_card_has_exact_products(kind):
    torch.manual_seed(0)
    network = kind(4, 5, num_layers=2, bidirectional=True, batch_first=True).to("cuda")
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 4, 4).cuda(), torch.tensor([4, 2, 1]), batch_first=True)
    judge = Judge()
    with judge, cstorch.precision("cbfloat16"):
        network(packed)[0].data.float().sum().backward()
    assert judge.wrong == []
    assert all(each.grad is not None for each in network.parameters())


def test_checkpointed_and_accumulated_gradients_on_a_card_have_exact_products():
    layer = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6)).to("cuda")
    judge = Judge()
    for reentrant, _ in itertools.product((True, False), range(2)):
        x = torch.ones(3, 6, device="cuda", requires_grad=True)
        with judge, cstorch.precision("cbfloat16", 2):
            torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert judge.wrong == []


def test_backend_of_kind_gpu_is_the_card():
    assert cstorch.device("GPU").torch_device.type == "cuda"
    assert cstorch.device("CSX").torch_device.type == "cpu"
    moved = cstorch.device("GPU").move_to_device({"x": torch.ones(2)})
    assert moved["x"].device.type == "cuda"
