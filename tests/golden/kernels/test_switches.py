"""Faults behind switches: which text stands for which number."""

import pytest

from lab.mutants.table import Edit

from .switches import with_switches


def test_expression_behind_a_switch_is_chosen_by_its_number():
    change = Edit("file", "x = «a + b»;", "a")
    assert with_switches("y = a + b; x = a + b;", [(3, change)]) == (
        "y = a + b; x = (chosen_fault == 3 ? (a) : (a + b));"
    )


def test_statement_behind_a_switch_is_chosen_by_its_number():
    assert with_switches("if (c) x++; else y++;", [(4, Edit("file", "x++;", ""))]) == (
        "if (c) { if (chosen_fault == 4) {  } else { x++; } } else y++;"
    )


def test_faults_in_one_place_are_chosen_by_their_numbers():
    changes = [(1, Edit("file", "a", "b")), (2, Edit("file", "a", "c"))]
    assert with_switches("f(a)", changes) == ("f((chosen_fault == 2 ? (c) : ((chosen_fault == 1 ? (b) : (a)))))")


def test_fault_within_the_place_of_another_is_chosen_where_the_other_is_not():
    changes = [(1, Edit("file", "b", "d")), (2, Edit("file", "return a(b);", "return c;"))]
    assert with_switches("{return a(b);}", changes) == (
        "{{ if (chosen_fault == 2) { return c; } else { return a((chosen_fault == 1 ? (d) : (b))); } }}"
    )


def test_faults_that_overlap_in_part_are_refused():
    with pytest.raises(AssertionError, match="two faults overlap: b \\+ c"):
        with_switches("a + b + c", [(1, Edit("file", "a + b", "a")), (2, Edit("file", "b + c", "c"))])


def test_text_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match=r"^file: got 2 matches of 'a', must be exactly 1$"):
        with_switches("a + a", [(1, Edit("file", "a", "b"))])
