"""Shares of a list of checks: together they are the whole list."""

import argparse

import pytest

from tools.share import Share, add_share


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_share(parser, "checks")
    return parser.parse_args(arguments).share


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("length", [0, 1, 7, 20])
def test_shares_of_a_list_hold_each_item_once(count, length):
    shares = [Share(number, count).of(range(length)) for number in range(1, count + 1)]
    assert sorted(item for share in shares for item in share) == list(range(length))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_share_is_everything_unless_one_is_asked_for():
    assert parsed().is_whole
    assert parsed().of("abc") == list("abc")
    assert parsed("--share", "2/3").of("abcdef") == list("be")
    assert not parsed("--share", "2/3").is_whole


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "2", "a/b", "1/2/3", "-1/2"])
def test_share_that_is_none_is_an_error(text, capsys):
    with pytest.raises(SystemExit):
        parsed(f"--share={text}")
    assert f"got '{text}', must be K/N with K from 1 to N" in capsys.readouterr().err
