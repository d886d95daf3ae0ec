"""What two ranks do on cards (tests/cuda/device), done by two ranks on this machine."""

from tests.cuda.device.ranks import train_on_two_ranks
from tests.torch.processes import run_on_two_ranks


def test_two_ranks_have_the_weights_of_one_process():
    run_on_two_ranks(train_on_two_ranks, "cpu")
