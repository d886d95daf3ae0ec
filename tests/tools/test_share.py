"""Shares of a list of checks: together they are the whole list."""

import argparse
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems
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
    assert parsed("--share", "2/3").of("abcdef") == list("bd")
    assert not parsed("--share", "2/3").is_whole


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "2", "a/b", "1/2/3", "-1/2"])
def test_share_that_is_none_is_an_error(text, capsys):
    with pytest.raises(SystemExit):
        parsed(f"--share={text}")
    assert f"got '{text}', must be K/N with K from 1 to N" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 3])
def test_each_test_that_takes_turns_runs_in_one_share_and_any_other_in_all(count):
    class Item:
        def __init__(self, name, *marks):
            self.name, self.get_closest_marker = name, lambda mark: mark if mark in marks else None

    every = [Item("always"), *(Item(f"in turn {number}", "turns") for number in range(5)), Item("too", "long")]
    ran = []
    for number in range(1, count + 1):
        items, left_out = list(every), []
        config = SimpleNamespace(
            getoption={"share": Share(number, count)}.__getitem__,
            hook=SimpleNamespace(pytest_deselected=lambda items, left_out=left_out: left_out.extend(items)),
        )
        pytest_collection_modifyitems(config, items)
        assert sorted(each.name for each in items + left_out) == sorted(each.name for each in every)
        ran += [each.name for each in items]
    assert {each.name: ran.count(each.name) for each in every} == {
        each.name: 1 if each.name.startswith("in turn") else count for each in every
    }
