"""Quick elaboration gives what Amaranth gives, and leaves Python and Amaranth as they were."""

import gc

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Shape
from amaranth.hdl._ast import Concat, Operator

from hdl import MultiplyAccumulate, VectorMac
from tools import elaboration
from tools.elaboration import quick_elaboration

UNITS = {
    "scalar": lambda: MultiplyAccumulate(stages=3, registers=4),
    "vector": lambda: VectorMac(lanes=2, stages=1, registers=4),
}


def netlist(unit):
    return rtlil.convert(UNITS[unit](), emit_src=False)


@pytest.mark.parametrize("unit", UNITS)
def test_quick_elaboration_of_a_unit_gives_the_same_netlist(unit):
    wanted = netlist(unit)
    with quick_elaboration():
        assert netlist(unit) == wanted


def test_shape_kept_of_another_expression_is_seen(monkeypatch):
    kept = {}

    def by_operator(shape_of):
        return lambda self: kept.setdefault(getattr(self, "operator", None), shape_of(self))

    def netlist_or_error():
        try:
            return netlist("scalar")
        except Exception as error:
            return error

    wanted = netlist("scalar")
    monkeypatch.setattr(elaboration, "_kept", by_operator)
    with quick_elaboration():
        assert netlist_or_error() != wanted


@pytest.mark.parametrize("enabled", [True, False])
def test_quick_elaboration_that_fails_leaves_all_as_it_was(enabled):
    before, shapes = gc.isenabled(), (Operator.shape, Concat.shape)

    def fail():
        assert not gc.isenabled()
        assert (Operator.shape, Concat.shape) != shapes
        raise ZeroDivisionError

    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), quick_elaboration():
            fail()
        assert gc.isenabled() is enabled
        assert (Operator.shape, Concat.shape) == shapes
    finally:
        (gc.enable if before else gc.disable)()


def test_shape_of_an_expression_is_asked_for_once():
    asked = []
    shape_of = elaboration._kept(lambda expression: asked.append(expression) or Shape(3))
    one = Concat([])
    assert (shape_of(one), shape_of(one), len(asked)) == (Shape(3), Shape(3), 1)
