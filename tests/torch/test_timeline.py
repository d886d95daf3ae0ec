"""The settings in force when a node was made: found by its number, in bounded memory, and on the safe side."""

import pytest
import torch

from golden.torch.settings import scopes
from golden.torch.settings.scopes import Timeline


def node():
    return (torch.ones(1, requires_grad=True) * 2).grad_fn._sequence_nr()


def test_timeline_tells_the_settings_of_each_node():
    line, numbers = Timeline(), [node()]
    for state in ("first", None, "second", "second", "third"):
        line.note(state)
        numbers.append(node())
    assert [line.at(number) for number in numbers] == [None, "first", None, "second", "second", "third"]
    assert line.latest() == "third"
    line.note(None)
    assert line.latest() == "third"


def test_timeline_without_a_node_between_two_changes_keeps_the_last():
    line = Timeline()
    line.note("left at once")
    line.note(None)
    assert not line
    line.note("in force")
    line.note("left at once")
    line.note("in force")
    assert line.at(node()) == "in force"


@pytest.mark.parametrize("longest", [16, 20])
def test_timeline_of_many_changes_stays_short_and_forgets_no_precision(monkeypatch, longest):
    monkeypatch.setattr(scopes, "_LONGEST", longest)
    line, inside = Timeline(), []
    for _ in range(100):
        line.note("precision")
        inside.append(node())
        line.note(None)
        node()
    assert len(line._starts) <= longest
    assert {line.at(number) for number in inside} == {"precision"}
    line.note(None)
    assert line.at(node()) is None
