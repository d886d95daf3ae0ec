"""Level maps: which module runs at which levels, by `pol` on that module; and errors for a wrong map."""

import copy
import pickle
import threading

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import golden.torch as cstorch
from golden.torch.settings import level_map, mapped
from golden.torch.settings.level_map import LevelMap
from golden.torch.settings.scopes import scopes

from .oracle import assert_codes, assert_same_tensors, normal, product

# The compiler makes an instance of torch.autograd.Function, against the advice of PyTorch.
pytestmark = pytest.mark.filterwarnings("ignore:<class 'torch.autograd.function.Function'> should not be instantiated")
LEVELS = {"blocks.*.mlp": {"fwd": 2, "bwd": 0}, "head": 0}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(40, 40)
        self.mlp = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.Linear(64, 40))

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(40, 3)

    def forward(self, x):
        return self.head(self.blocks(x))

    def encode(self, x):
        return self.blocks(x)


def with_pols(net):
    """Return a copy of the net with a `pol` on each module that LEVELS names: the oracle."""
    net = copy.deepcopy(net)
    for block in net.blocks:
        block.mlp = cstorch.pol(fwd_level=2, bwd_level=0)(block.mlp)
    net.head = cstorch.pol(level=0)(net.head)
    return net


def results(net, context, call=None, inside=False):
    x = normal(6, 40, seed=3, grad=True)
    net.zero_grad()
    with context:
        loss = (net if call is None else call)(x).square().sum() * 1024
        if inside:
            loss.backward()
    if not inside:
        with cstorch.pol(level=1):  # of the backward call, not of the forward pass
            loss.backward()
    return [loss.detach(), x.grad, *(each.grad for each in net.parameters())]


def precision(**given):
    return cstorch.precision("cbfloat16", 1, **given)


def assert_same(got, wanted):
    for one, other in zip(got, wanted, strict=True):
        assert_same_tensors(one, other)


@pytest.fixture
def wanted():
    result = results(with_pols(Net()), precision())
    plain = results(Net(), precision())
    assert all((one != other).any() for one, other in zip(result, plain, strict=True))
    return result


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    assert scopes.maps == scopes.mapped == scopes.pols == ()
    assert not mapped._Hooks.users
    assert not nn.modules.module._global_forward_pre_hooks


class Wrapped(nn.Module):
    def __init__(self, net, way):
        super().__init__()
        self.net, self.way = net, way

    def forward(self, x):
        return self.way(self.net, x)


WAYS = {
    "a context": lambda net: results(net, precision(levels=LEVELS)),
    "a context with the model": lambda net: results(net, precision(levels=LEVELS, model=net)),
    "backward inside": lambda net: results(net, precision(levels=LEVELS), inside=True),
    "a part, of a known model": lambda net: results(
        net, precision(levels=LEVELS, model=net), lambda x: net.head(net.encode(x))
    ),
    "a pol around a module": lambda net: results(net, precision(), cstorch.pol(levels=LEVELS)(net)),
    "a pol around a function": lambda net: results(net, precision(), cstorch.pol(levels=LEVELS)(lambda x: net(x))),
    "a copied pol around a module": lambda net: results(
        *(lambda twin: (twin, precision(), twin))(copy.deepcopy(cstorch.pol(levels=LEVELS)(net)))
    ),
    "a pickled pol around a module": lambda net: results(
        *(lambda twin: (twin, precision(), twin))(pickle.loads(pickle.dumps(cstorch.pol(levels=LEVELS)(net))))
    ),
    "a pol as a context": lambda net: results(net, cstorch.pol(levels=LEVELS), lambda x: in_precision(net, x)),
    "MixedPrecision": lambda net: results(
        net,
        cstorch.MixedPrecision(fp16_type="cbfloat16", loss_scaling_factor="dynamic", levels=LEVELS).autocast(net),
    ),
    "one map in another": lambda net: results(
        net, precision(levels={"head": 2, "blocks.0": 2}), lambda x: in_precision(net, x, levels={**LEVELS, "*.*": 1})
    ),
}


def in_precision(net, x, **given):
    with precision(**given):
        return net(x)


@pytest.mark.parametrize("way", WAYS)
def test_level_map_gives_the_bits_of_a_pol_on_each_module(way, wanted):
    assert_same(WAYS[way](Net()), wanted)


CHECKPOINTS = {
    "reentrant": lambda net, x: checkpoint(net, x, use_reentrant=True),
    "not reentrant": lambda net, x: checkpoint(net, x, use_reentrant=False),
    "of a part": lambda net, x: net.head(checkpoint(net.blocks, x, use_reentrant=False)),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("way", CHECKPOINTS)
def test_level_map_holds_in_a_recomputation(way, inside, wanted):
    net = Net()
    got = results(net, precision(levels=LEVELS, model=net), lambda x: CHECKPOINTS[way](net, x), inside)
    assert_same(got, wanted)


def test_level_map_holds_in_a_recomputation_within_the_model(wanted):
    net = Wrapped(Net(), CHECKPOINTS["of a part"])
    levels = {f"net.{pattern}": given for pattern, given in LEVELS.items()}
    assert_same(results(net, precision(levels=levels)), wanted)


@pytest.mark.turns
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_level_map_holds_in_a_compiled_model_and_changes_with_the_map(backend, wanted):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    net = Net()
    compiled = torch.compile(net, backend=backend, fullgraph=True)
    plain, other = results(net, precision()), results(net, precision(levels={"blocks.1": 0}))
    for _ in range(2):
        assert_same(results(net, precision(), compiled), plain)
        assert_same(results(net, precision(levels=LEVELS), compiled), wanted)
        assert_same(results(net, precision(levels={"blocks.1": 0}), compiled), other)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 3  # the second time nothing is compiled


def test_level_map_without_its_model_in_a_compiled_function_is_an_error_that_says_so():
    torch._dynamo.reset()
    net = Net()
    function = torch.compile(lambda x: net(x), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match=r"levels: got a map without its model in code that torch.compile makes"):
        results(net, precision(levels=LEVELS), function)
    assert_same(results(net, precision(levels=LEVELS, model=net), function), results(net, precision(levels=LEVELS)))


def test_level_map_sets_chunk_and_format_of_a_layer_in_both_passes():
    net, x = nn.Sequential(nn.Linear(64, 5, bias=False), nn.Identity()), normal(40, 64, seed=1, grad=True)
    upstream = normal(40, 5, seed=2)
    with precision(levels={"0": {"level": 1, "chunk": 8, "half": "bfloat16"}}):
        result = net(x)
    assert result.dtype == torch.bfloat16
    result.backward(upstream.bfloat16())
    weight = net[0].weight.detach()
    assert_codes(result, product(x, weight.mT, "bfloat16", 1, chunk=8), "bfloat16")
    assert_codes(net[0].weight.grad, product(upstream.mT, x, "bfloat16", 1, chunk=8), "bfloat16")
    assert_codes(x.grad, product(upstream, weight, "bfloat16", 1, chunk=8), "bfloat16")
    assert (
        product(upstream, weight, "bfloat16", 1, chunk=2) != product(upstream, weight, "bfloat16", 1, chunk=8)
    ).any()


class Telling(nn.Module):
    def __init__(self, told, *children):
        super().__init__()
        self.told, self.parts = told, nn.ModuleList(children)

    def forward(self, x):
        self.told.append(tuple(cstorch.current_pol()))
        for each in self.parts:
            each(x)
        return x


def told(levels, around=1):
    heard = []
    net = Telling(heard, Telling(heard, Telling(heard)), Telling(heard))
    with cstorch.precision("cbfloat16", around, levels=levels):
        net(torch.ones(1))
    return heard


@pytest.mark.parametrize(
    ("levels", "wanted"),
    [
        ({"parts.0": 2}, [(1, 1), (2, 2), (2, 2), (1, 1)]),  # parts of a module run as it does
        ({"parts.0": 2, "parts.0.parts.0": {"bwd": 0}}, [(1, 1), (2, 2), (2, 0), (1, 1)]),
        ({"parts.0.parts.0": {"bwd": 0}, "parts.0": 2}, [(1, 1), (2, 2), (2, 0), (1, 1)]),  # in either order
        ({"parts.0": 2, "parts.*": 0}, [(1, 1), (2, 2), (2, 2), (0, 0)]),  # the more specific pattern
        ({"parts.*": 0, "parts.0": {"fwd": 2}}, [(1, 1), (2, 0), (2, 0), (0, 0)]),  # pass by pass
        ({"parts.?": 0, "**": 2}, [(1, 1), (0, 0), (2, 2), (0, 0)]),
        ({"**.parts.0": 2}, [(1, 1), (2, 2), (2, 2), (1, 1)]),
        ({"parts.[1-9]": 0}, [(1, 1), (1, 1), (1, 1), (0, 0)]),
        ({"parts.0": {"level": 2, "bwd": 0}}, [(1, 1), (2, 0), (2, 0), (1, 1)]),
        ({}, [(1, 1)] * 4),
    ],
)
def test_level_map_of_nested_modules_gives_each_the_nearest_and_most_specific(levels, wanted):
    assert told(levels) == wanted


def test_level_map_pol_nearer_to_the_call_wins():
    heard = []
    inner = cstorch.pol(bwd_level=0)(Telling(heard))
    net = Telling(heard, inner)
    with cstorch.pol(level=0), precision(levels={"parts.0": 2}):
        net(torch.ones(1))
    assert heard == [(0, 0), (2, 0)]


def test_level_map_of_numbered_modules_takes_the_numbers_of_yaml():
    heard = []
    net = nn.Sequential(Telling(heard), Telling(heard))
    with precision(levels={1: 2}):
        net(torch.ones(1))
    assert heard == [(1, 1), (2, 2)]


def test_level_map_of_a_module_with_two_paths_holds_under_either():
    heard = []
    shared = Telling(heard)
    with precision(levels={"1": 2}):
        nn.Sequential(shared, shared)(torch.ones(1))
    assert heard == [(2, 2), (2, 2)]


def test_level_map_is_given_back_after_an_exception_and_an_interruption():
    class Fails(nn.Module):
        def __init__(self, error):
            super().__init__()
            self.error = error

        def forward(self, x):
            raise self.error

    for error in (ZeroDivisionError, KeyboardInterrupt):
        net = nn.Sequential(nn.Sequential(Fails(error)))
        with pytest.raises(error), precision(levels={"0": 2, "0.0": 0}):
            net(torch.ones(1))
        assert scopes.maps == scopes.mapped == scopes.pols == ()
    net = nn.Sequential(nn.Sequential(Fails(ZeroDivisionError)))
    with precision(levels={"0": 2}):
        with pytest.raises(ZeroDivisionError):
            net(torch.ones(1))
        assert cstorch.current_pol() == (1, 1)


def test_level_map_is_of_its_thread():
    heard = []
    net = Telling(heard, Telling(heard))
    with precision(levels={"parts.0": 2}):
        thread = threading.Thread(target=net, args=(torch.ones(1),))
        thread.start()
        thread.join()
    assert heard == [(1, 1), (1, 1)]


def test_level_map_leaves_a_loss_module_alone_and_follows_a_changed_model():
    net = Net()
    with precision(levels=LEVELS):
        nn.MSELoss()(net(normal(2, 40)), torch.zeros(2, 3))
        heard = []
        net.head = nn.Sequential(Telling(heard))
        net(normal(2, 40))
    assert heard == [(0, 0)]


@pytest.mark.parametrize(
    ("levels", "error", "message"),
    [
        (5, TypeError, "levels: got 5, must be a mapping"),
        ({0.1: 1}, TypeError, "levels: got 0.1 as a pattern, must be a string"),
        ({"a..b": 1}, ValueError, r"levels: got 'a\.\.b' as a pattern, must be parts"),
        ({"head": 3}, ValueError, "levels: 'head': level: got 3, must be 0"),
        ({"head": True}, TypeError, "levels: 'head': level: got True, must be 0"),
        ({"head": {"forward": 1}}, ValueError, "'head' has the unknown key 'forward', did you mean fwd"),
        ({"head": {"chnk": 1}}, ValueError, "'head' has the unknown key 'chnk', did you mean chunk?"),
        ({"head": {}}, ValueError, "'head' sets nothing"),
        ({"head": {"chunk": 0}}, ValueError, "'head': chunk: got 0, must be at least 1"),
        ({"head": {"half": "float17"}}, ValueError, "'head': half: got 'float17', must be 'float16'"),
        ({"head": {"inner": "bfloat16"}}, ValueError, "'head' has inner without half"),
        ({"0": 1, 0: 2}, ValueError, "levels: got '0' twice"),
        ({"hed": 1}, ValueError, "levels: 'hed' matches no module of Net, near are 'head'"),
        ({"block.*.mlp": 1}, ValueError, r"matches no module of Net, near are 'blocks.\*.mlp'"),
        ({"qqq": 1}, ValueError, "matches no module of Net, at its top are 'blocks', 'head'"),
        ({"head": 1, "*.mlp": 1}, ValueError, r"levels: '\*.mlp' matches no module"),  # a star is one part of a path
    ],
)
def test_level_map_that_is_wrong_is_an_error_that_says_what(levels, error, message):
    net = Net()
    with pytest.raises(error, match=message):
        precision(levels=levels, model=net)
    with pytest.raises(error, match=message), precision(levels=levels):
        net(normal(2, 40))


def test_level_map_of_a_part_that_never_runs_is_an_error():
    net = nn.Sequential(nn.MultiheadAttention(8, 2))
    with pytest.raises(ValueError, match=r"'0.out_proj' matches no module of Sequential, at its top are '0'"):
        precision(levels={"0.out_proj": 2}, model=net)


def test_precision_model_without_levels_is_an_error():
    with pytest.raises(ValueError, match="model: got a model without levels"):
        cstorch.precision(model=Net())
    with pytest.raises(TypeError, match="model: got 1, must be"):
        cstorch.precision(levels={}, model=1)


def test_level_map_beside_the_accumulator_of_another_machine_is_an_error():
    with pytest.raises(ValueError, match=r"levels: got \{'head': 0\} with reduction, must be left out"):
        cstorch.precision("bfloat16", reduction="nvidia_hopper", levels={"head": 0})
    net = Net()
    with pytest.raises(ValueError, match="pol: got"), cstorch.precision("bfloat16", reduction="nvidia_hopper"):
        cstorch.pol(levels={"head": 0})(net)(normal(2, 40))


def changed_sources():
    return [
        ("_specificity", lambda _: 0, {"parts.0": 2, "parts.*": 0}),  # the last one wins
        ("_matches", lambda pattern, path: pattern[0] == path[0], {"parts.1": 0}),  # the first part decides
    ]


@pytest.mark.parametrize(("name", "fault", "levels"), changed_sources())
def test_level_map_fault_in_the_matching_is_seen(name, fault, levels, monkeypatch):
    right = told(levels)
    monkeypatch.setattr(level_map, name, fault)
    assert told(levels) != right


def test_level_map_fault_in_the_recomputation_is_seen(wanted, monkeypatch):
    # A checkpoint that forgot the map would give the second forward pass, and so the gradients, other levels.
    net = Net()
    monkeypatch.setattr(mapped, "_before", lambda *_: None)
    got = results(net, precision(levels=LEVELS, model=net), lambda x: CHECKPOINTS["not reentrant"](net, x))
    assert any((one != other).any() for one, other in zip(got, wanted, strict=True))


def test_level_map_document_has_only_types_of_yaml():
    given = {"a": 1, 0: {"half": torch.bfloat16, "chunk": None}, "b": {"half": "float8_e4m3fn", "inner": "cbfloat16"}}
    assert LevelMap.of(given).document == {
        "a": 1,
        "0": {"half": "bfloat16", "chunk": None},
        "b": {"half": "float8_e4m3fn", "inner": "cbfloat16"},
    }
