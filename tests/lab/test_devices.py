"""Blind verdicts on devices: those of other libraries, this project's netlists, and a faulty one."""

import pytest

import golden
from golden import BF16, FP16, FP32
from lab.devices.__main__ import main
from lab.devices.catalogue import DEVICES
from lab.devices.device import Device
from lab.devices.family import member
from lab.devices.judge import judged

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
    assert "1 devices: 0 wrong verdicts, 0 of the family not found" in capsys.readouterr().out
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


@pytest.mark.long
@pytest.mark.parametrize(("number", "total"), [*((each, FP32) for each in (0, 1, 2, 4, 31)), (0, FP16), (9, FP16)])
def test_random_member_of_the_family_is_found(number, total):
    verdict = judged(member(number, total), verify=20_000)
    assert (verdict.is_wrong, verdict.is_missed) == (False, False), verdict.found.text()
