"""pol: which level is in force, where, for which pass, and that it is given back."""

import asyncio
import copy
import pickle
import threading

import pytest
import torch

import golden.torch as cstorch

from .oracle import assert_codes, assert_same_tensors, normal, product


def levels():
    return tuple(cstorch.current_pol())


def test_current_pol_is_level_1_unless_told_otherwise():
    assert levels() == (1, 1)
    assert cstorch.current_pol().bwd == 1
    cstorch.set_model_level(2)
    assert levels() == (2, 2)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"level": 0}, (0, 0)),
        ({"fwd_level": 0}, (0, 1)),
        ({"bwd_level": 2}, (1, 2)),
        ({"level": 2, "fwd_level": 0}, (0, 2)),
        ({"level": 2, "bwd_level": 0}, (2, 0)),
        ({"fwd_level": 2, "bwd_level": 0}, (2, 0)),
        ({"level": 2, "enable_fwd": False}, (1, 2)),
        ({"level": 2, "enable_bwd": False}, (2, 1)),
        ({"level": 2, "fwd_level": 0, "enable_fwd": False}, (1, 2)),
    ],
)
def test_pol_sets_each_pass(given, wanted):
    with cstorch.pol(**given):
        assert levels() == wanted
    assert levels() == (1, 1)
    assert cstorch.pol(**given)(levels)() == wanted


def test_pol_innermost_wins_pass_by_pass():
    with cstorch.pol(level=0):
        with cstorch.pol(bwd_level=2):
            assert levels() == (0, 2)
            with cstorch.pol(level=1, enable_bwd=False):
                assert levels() == (1, 2)
        assert levels() == (0, 0)


def test_pol_overrides_the_model_wide_level_inside_and_outside_a_context():
    with cstorch.precision("cbfloat16", level=2):
        assert levels() == (2, 2)
        with cstorch.pol(fwd_level=0):
            assert levels() == (0, 2)
            with cstorch.precision("cbfloat16", level=1):
                assert levels() == (0, 1)
    assert levels() == (1, 1)


def test_pol_is_given_back_after_an_exception():
    with pytest.raises(ZeroDivisionError), cstorch.pol(level=0):
        raise ZeroDivisionError
    assert levels() == (1, 1)

    @cstorch.pol(level=0)
    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert levels() == (1, 1)


def test_pol_object_may_be_used_again_and_within_itself():
    scope = cstorch.pol(level=0)

    @scope
    def count(n):
        return [levels()] + (count(n - 1) if n else [])

    assert count(3) == [(0, 0)] * 4
    with scope, scope, cstorch.pol(level=2), scope:
        assert levels() == (0, 0)
    assert levels() == (1, 1)


def test_pol_decorates_functions_methods_static_methods_and_callables():
    class Model:
        @cstorch.pol(level=0)
        def method(self):
            """Say something."""
            return self, levels()

        @cstorch.pol(level=2)
        @staticmethod
        def static():
            return levels()

        @cstorch.pol(fwd_level=0)
        @classmethod
        def of_class(cls):
            return cls, levels()

        def __call__(self):
            return levels()

    model = Model()
    assert model.method() == (model, (0, 0))
    assert Model.method.__doc__ == "Say something."
    assert model.static() == (2, 2)
    assert Model.of_class() == (Model, (0, 1))
    assert cstorch.pol(level=2)(model)() == (2, 2)
    assert cstorch.pol(level=2)(model.method)()[1] == (0, 0)


def test_pol_generator_has_its_level_inside_and_not_between():
    @cstorch.pol(level=0)
    def steps():
        seen = []
        while True:
            try:
                seen.append((yield levels()))
            except KeyError:
                return seen, levels()

    generator = steps()
    assert levels() == (1, 1)
    assert next(generator) == (0, 0)
    assert levels() == (1, 1)
    with cstorch.pol(level=2):
        assert generator.send("a") == (0, 0)
        assert levels() == (2, 2)
    with pytest.raises(StopIteration) as end:
        generator.throw(KeyError)
    assert end.value.value == (["a"], (0, 0))
    assert levels() == (1, 1)


def test_pol_generator_that_is_closed_cleans_up_at_its_level():
    seen = []

    @cstorch.pol(level=0)
    def steps():
        try:
            yield
        finally:
            seen.append(levels())

    generator = steps()
    next(generator)
    generator.close()
    assert seen == [(0, 0)]
    assert levels() == (1, 1)


def test_pol_block_in_a_generator_that_is_closed_late_removes_itself_only():
    def steps():
        with cstorch.pol(level=0):
            yield

    generator = steps()
    next(generator)
    with cstorch.pol(level=2):
        generator.close()
        assert levels() == (2, 2)
    assert levels() == (1, 1)


def test_pol_coroutines_keep_their_levels_apart():
    async def work():
        seen = [levels()]
        await asyncio.sleep(0)
        return [*seen, levels()]

    async def both():
        return await asyncio.gather(cstorch.pol(level=0)(work)(), cstorch.pol(level=2)(work)(), work())

    assert asyncio.run(both()) == [[(0, 0)] * 2, [(2, 2)] * 2, [(1, 1)] * 2]


def test_pol_belongs_to_its_thread():
    seen = []
    with cstorch.pol(level=0):
        thread = threading.Thread(target=lambda: seen.append(levels()))
        thread.start()
        thread.join()
        assert levels() == (0, 0)
    assert seen == [(1, 1)]


class Recorder(torch.nn.Linear):
    def forward(self, x):
        self.seen = levels()
        return super().forward(x)


def test_pol_module_shares_everything_with_the_layer_and_leaves_it_alone():
    layer = Recorder(4, 3)
    at_level = cstorch.pol(level=0)(layer)
    assert isinstance(at_level, Recorder)
    assert at_level.weight is layer.weight
    assert list(at_level.state_dict()) == ["weight", "bias"]
    at_level(torch.ones(2, 4))
    assert at_level.seen == (0, 0)
    layer(torch.ones(2, 4))
    assert layer.seen == (1, 1)
    assert levels() == (1, 1)


def test_pol_module_in_a_model_is_copied_and_saved_with_it():
    model = torch.nn.Sequential(cstorch.pol(level=0)(cstorch.pol(fwd_level=2)(Recorder(4, 3))))
    assert list(model.state_dict()) == ["0.weight", "0.bias"]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            other[0].weight.zero_()
        assert (other(torch.ones(2, 4)) == other[0].bias).all()  # its own weight, not the first model's
        assert other[0].seen == (2, 0)
    assert (model[0].weight != 0).any()


def test_pol_module_runs_a_forward_that_was_set_on_the_instance():
    layer = torch.nn.Linear(2, 2)
    layer.forward = lambda x: levels()
    assert cstorch.pol(level=0)(layer)(None) == (0, 0)


def test_pol_decides_the_bits_of_a_layer_in_both_passes():
    torch.manual_seed(0)
    layer = torch.nn.Linear(40, 50, bias=False)
    x, upstream = normal(30, 40, seed=1), normal(30, 50, seed=2)
    with cstorch.precision("cbfloat16", level=1):
        result = cstorch.pol(fwd_level=2, bwd_level=0)(layer)(x)
    result.backward(upstream)
    assert_codes(result, product(x, layer.weight.detach().T, "cbfloat16", 2), "cbfloat16")
    assert_codes(layer.weight.grad, product(upstream.T, x, "cbfloat16", 0), "cbfloat16")


def test_pol_is_obeyed_by_matrix_products_only():
    x = normal(5, 6)
    for function in (torch.nn.GELU(), torch.nn.LayerNorm(6), torch.nn.Softmax(-1), torch.sum):
        with cstorch.precision("cbfloat16", level=0):
            assert_same_tensors(cstorch.pol(level=2)(function)(x), function(x))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, r"^level: got None, must be 0, 1 or 2 unless fwd_level or bwd_level is given"),
        ({"enable_fwd": True}, ValueError, r"^level: got None"),
        ({"level": 3}, ValueError, r"^level: got 3, must be 0 \(fp32\), 1"),
        ({"level": -1}, ValueError, r"^level: got -1"),
        ({"fwd_level": 4}, ValueError, r"^fwd_level: got 4"),
        ({"level": 1, "bwd_level": "2"}, TypeError, r"^bwd_level: got '2', must be 0, 1 or 2"),
        ({"level": True}, TypeError, r"^level: got True"),
        ({"level": 1.0}, TypeError, r"^level: got 1.0"),
        ({"level": 1, "enable_bwd": 0}, TypeError, r"^enable_bwd: got 0, must be True or False"),
    ],
)
def test_pol_of_a_bad_level_names_it(given, error, message):
    with pytest.raises(error, match=message):
        cstorch.pol(**given)


async def generate():
    yield


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (3, r"^pol: got 3, must be callable"),
        (torch.nn.Linear, r"^pol: got the class Linear, must be an instance or a method"),
        (generate, r"^pol: got the async generator generate"),
    ],
)
def test_pol_of_what_it_cannot_wrap_says_so(target, message):
    with pytest.raises(TypeError, match=message):
        cstorch.pol(level=1)(target)


def test_pol_without_a_level_before_the_function_says_how_it_is_written():
    with pytest.raises(TypeError, match=r"as in @pol\(level=1\)"):
        cstorch.pol(levels)


def test_set_model_level_checks_its_level():
    with pytest.raises(ValueError, match=r"^level: got 5"):
        cstorch.set_model_level(5)
    with pytest.raises(TypeError, match=r"^level: got False"):
        cstorch.set_model_level(False)
