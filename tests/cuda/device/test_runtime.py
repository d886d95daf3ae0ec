"""Streams, CUDA graphs, threads, torch.compile and two ranks: the bits equal a plain call's."""

import threading

import pytest
import torch
import torch.nn.functional as F

import golden.torch as cstorch
from tests.cuda.device.card import IN_MEMORY, faulty
from tests.cuda.device.judge import Judge, differing
from tests.cuda.device.ranks import train_on_two_ranks
from tests.torch.processes import run_on_two_ranks
from tests.zoo.layers import drawn

on_a_real_card = pytest.mark.skipif(IN_MEMORY, reason="a card in memory has no streams, and is in one process alone")
X, WEIGHT, KERNEL = (drawn(shape, seed, False) for seed, shape in enumerate([(6, 40), (24, 40), (4, 3, 3)]))


def network(x, weight, kernel):
    """Matrix products, a convolution and attention with its softmax, with no function of PyTorch's own between."""
    rows = F.linear(x, weight)
    channels = F.conv1d(rows.view(2, 3, 24), kernel, padding=1)
    return F.scaled_dot_product_attention(channels, channels, channels)


def operands():
    return [each.cuda().requires_grad_() for each in (X, WEIGHT, KERNEL)]


def forward_and_backward(function, given):
    for each in given:
        each.grad = None
    with cstorch.precision("cbfloat16", 2):
        result = function(*given)
    result.backward(torch.ones_like(result))
    return [result.detach().clone(), *(each.grad.clone() for each in given)]


def assert_same(found, expected):
    assert [differing(*pair) for pair in zip(found, expected, strict=True)] == [None] * len(expected)


@pytest.mark.filterwarnings("default")  # the compiler's own warnings, and its advice on TF32
@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=on_a_real_card)])
def test_compiled_network_has_the_bits_of_the_plain_one(backend):
    torch._dynamo.reset()
    given = operands()
    compiled = torch.compile(network, backend=backend)
    found = forward_and_backward(compiled, given)
    judge = Judge()
    with judge:
        expected = forward_and_backward(network, given)
    assert judge.wrong == []
    if backend != "inductor":  # which may compute the gradient of a softmax in another order
        assert_same(found, expected)
    else:
        assert_same(found[:1], expected[:1])
    with faulty():
        assert differing(forward_and_backward(compiled, given)[0], expected[0])


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_products_in_a_thread_of_their_own_have_the_same_bits(half):
    x, weight, _ = operands()
    found = []

    def run():
        with cstorch.precision(half):
            result = F.linear(x, weight)
        result.backward(torch.ones_like(result))
        found.extend([result.detach(), x.grad, weight.grad])

    run()
    expected, x.grad, weight.grad = found[:], None, None
    found.clear()
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert_same(found, expected)


@on_a_real_card
def test_products_on_another_stream_wait_for_nothing_and_have_the_same_bits():
    x = torch.randn(300, 200, device="cuda")
    expected = cstorch.matmul(x, x.T)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = cstorch.matmul(x, x.T)
    torch.cuda.current_stream().wait_stream(stream)
    assert_same([found], [expected])


@on_a_real_card
def test_step_in_a_cuda_graph_has_the_bits_of_new_operands():
    given = operands()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # kernels are compiled, loaded and checked, and tables made, before the capture
        for _ in range(2):
            forward_and_backward(network, given)
    torch.cuda.current_stream().wait_stream(stream)
    for each in given:
        each.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with cstorch.precision("cbfloat16", 2):
            result = network(*given)
        result.backward(torch.ones_like(result))
    for seed in (7, 8):
        with torch.no_grad():
            for each in given:
                each.copy_(drawn(tuple(each.shape), seed, False))
        graph.replay()
        found = [result.detach().clone(), *(each.grad.clone() for each in given)]
        plain = [each.detach().clone().requires_grad_() for each in given]
        assert_same(found, forward_and_backward(network, plain))


@on_a_real_card
@pytest.mark.parametrize("backend", ["gloo", "cpu:gloo,cuda:nccl", "nccl"])
def test_two_ranks_on_cards_have_the_weights_of_one_process_on_the_cpu(backend):
    if "nccl" in backend and torch.cuda.device_count() < 2:
        pytest.skip("NCCL needs a card for each of the two ranks")
    run_on_two_ranks(train_on_two_ranks, "cuda", backend=backend)
