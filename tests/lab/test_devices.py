"""Blind verdicts on devices: kernels of other libraries, this project's netlists, and a faulty one."""

from dataclasses import replace

import pytest

import golden
from golden import BF16, FP16, FP32
from lab.devices import members
from lab.devices.__main__ import main
from lab.devices.catalogue import DEVICES
from lab.devices.device import Device
from lab.devices.family import member
from lab.devices.judge import Verdict, judged
from tools import results

OTHERS = [name for name in DEVICES if name not in golden.accumulators and not name.startswith("level")]


@pytest.mark.long
@pytest.mark.parametrize("name", [*OTHERS, "level 0, one ulp wrong in a thousand sums"])
def test_device_is_identified_or_rightly_outside_the_family(name):
    device = DEVICES[name]
    verdict = judged(device, verify=20_000)
    assert (verdict.is_wrong, verdict.is_missed) == (False, False), verdict.found.text()
    if device.model is not None:
        asked = verdict.found.model
        assert (asked.inner, asked.outer, asked.chunk) == (device.model.inner, device.model.outer, device.model.chunk)


def test_judge_says_of_a_model_of_a_device_outside_the_family_that_it_is_wrong():
    exact = DEVICES["level 0, bfloat16"]
    assert not judged(exact, verify=100).is_wrong
    assert judged(Device(exact.function, BF16, False), verify=100).is_wrong


def test_command_judges_the_named_devices(capsys):
    assert main(["level 1, bfloat16", "--verify", "100"]) == 0
    assert "1 devices: 0 wrong verdicts, 0 left without a model that exists" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["no such"])
    assert "NAME: got no such" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--total", "float16"])
    assert "--total: got float16, must be given with --family" in capsys.readouterr().err


def test_member_of_the_family_depends_on_its_number_alone():
    assert member(3).model == member(3).model != member(4).model
    assert len({member(number).model for number in range(50)}) == 50
    assert {member(number, FP16).model.outer for number in range(50)} == {FP16}


def test_record_of_members_goes_on_with_the_next_one_and_names_those_not_found(monkeypatch, tmp_path, capsys):
    asked = []

    def judge(first, count, total, verify, jobs):
        asked.append((first, count))
        yield from "fnrw"[first:count]

    monkeypatch.setattr(members, "judge", judge)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(members, "publish", results.keep)
    assert main(["--family", "2", "--verify", "100", "--update-docs"]) == 0
    results.keep(replace(results.read("family"), note="Judged elsewhere."))
    assert main(["--family", "4", "--verify", "100", "--update-docs"]) == 1
    assert results.read("family").note == "Judged elsewhere."
    assert "4 members: 1 found, 1 not found, 1 refused, 1 wrong model" in capsys.readouterr().out
    assert main(["--family", "2", "--verify", "99", "--update-docs"]) == 0
    assert asked == [(0, 2), (2, 4), (0, 2)]
    (row,) = members.table({"float32": "fnrwNF"}).rows
    assert row == ("float32", "6", "2", "2", "1", "1", "2", "1, 3, 4")


def test_member_with_a_wrong_model_is_judged_again_with_a_million_sums(monkeypatch):
    asked = []

    def judge(device, verify):
        asked.append(verify)
        return Verdict(None, is_wrong=len(asked) == 1, is_missed=False, sums=5, calls=1, seconds=0.5)

    monkeypatch.setattr(members, "judged", judge)
    letter, about = members._judged(114, "float32", 20_000)
    assert asked == [20_000, 1_000_000]
    assert (letter, about) == ("F", "5 sums, 0.5 s, after a wrong model with 20,000 sums of verification")


@pytest.mark.long
def test_judging_members_gives_a_letter_for_each_in_order(capsys):
    assert "".join(members.judge(1, 3, "float32", 1000, 2)) == "ff"
    assert "member 1: found, " in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "total"),
    [
        *((each, FP32) for each in (0, 1, 2, 4, 31)),
        (46, FP32),  # the total keeps other bits than the terms beside it
        (40, FP32),  # the sum of a block is not rounded before it joins the total
        (121, FP32),  # terms keep 16 bits, and their sum 8
        (145, FP32),  # terms of the join keep 3 bits
        (0, FP16),
        (9, FP16),
    ],
)
def test_random_member_of_the_family_is_found(number, total):
    verdict = judged(member(number, total), verify=20_000)
    assert (verdict.is_wrong, verdict.is_missed) == (False, False), verdict.found.text()


@pytest.mark.long
def test_member_whose_nearest_model_is_wrong_in_few_sums_gets_none():
    # A model without the member's 30 bits of the join had passed 20,000 sums of verification.
    found = judged(member(62), verify=20_000).found
    assert found.model is None
    assert found.failing is not None
