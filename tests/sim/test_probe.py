"""Machine code is driven as a simulator is: a probe in the place of a unit answers with its own inputs."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from sim.bench.episode import PATIENCE, SURPLUS, Ran
from sim.bench.shell import shell
from sim.counts import COUNTER_BITS, COUNTERS
from sim.cycles.model import Model
from sim.fields import Fields
from sim.port import Port
from sim.scenario import Scenario
from tests.sim.test_monitor import PAYLOADS, driven
from tools.paths import ROOT

ANSWER = Fields({"payload": 16, "chunk": 4, "gap": 4, "idle": 8, "clears": 8})
PORT = Port(Fields({"code": 16}), ANSWER, chunk_bits=4, counters="ports")
#: For each payload: the chunk length with it and in the cycle before it, cycles without an offer before it, and clears.
#: Counter n counts n + 1 for each payload, a cycle later.
PROBE = f"""
module probe(
  input clk, input rst, input [15:0] i__payload, input i__valid, output i__ready, output reg [39:0] o__payload,
  output reg o__valid, input o__ready, input [3:0] chunk, input clear_counts,
  output reg [{len(COUNTERS) * COUNTER_BITS - 1}:0] counts
);
  reg [7:0] idle, clears;
  reg [3:0] before;
  reg counted;
  assign i__ready = ~o__valid | o__ready;
  wire accepts = i__valid & i__ready;
  integer at;
  initial begin o__valid = 0; idle = 0; clears = 0; before = 0; counted = 0; counts = 0; o__payload = 0; end
  always @(posedge clk) begin
    before <= chunk;
    idle <= accepts ? 8'd0 : i__valid ? idle : idle + 8'd1;
    clears <= clears + {{7'd0, clear_counts}};
    counted <= accepts;
    for (at = 0; at < {len(COUNTERS)}; at = at + 1)
      counts[at*{COUNTER_BITS} +: {COUNTER_BITS}] <=
        (clear_counts ? {COUNTER_BITS}'d0 : counts[at*{COUNTER_BITS} +: {COUNTER_BITS}]) + (counted ? at + 1 : 0);
    if (accepts) begin o__payload <= {{clears, idle, before, chunk, i__payload}}; o__valid <= 1; end
    else if (o__ready) o__valid <= 0;
    if (rst) begin o__valid <= 0; idle <= 0; clears <= 0; counted <= 0; counts <= 0; end
  end
endmodule
"""


@pytest.fixture(scope="module")
def probe() -> Model:
    folder = ROOT / "build" / "test_probe"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "probe.v").write_text(PROBE)
    (folder / "shell.v").write_text(shell("probe", PORT))
    return Model([folder / "probe.v", folder / "shell.v"], PORT, folder / "compiled")


def ran(probe: Model, **given: Any) -> Ran:
    words = np.array(PAYLOADS, np.uint64)
    arrays = {key: np.array(each) for key, each in given.items()}
    (found,) = probe.run(Scenario("one", words, words, np.arange(len(words)), **arrays))
    return found


def seen(found: Ran, name: str) -> list[int]:
    return [ANSWER.unpack(answer)[name] for answer in found.answers]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"pauses": [0, 2, 0, 5]},
        {"pauses": [3, 0, 1, 0], "gaps": [5, 6, 7, 8]},
        {"offers": [True, False, False]},
        {"offers": [True, True, False], "pauses": [1, 1, 2, 1], "gaps": [9, 8, 7, 6]},
    ],
    ids=str,
)
def test_machine_code_is_driven_as_a_simulator_is(probe: Model, given: dict[str, Any]) -> None:
    given = {"chunks": [1, 2, 3, 4], **given}
    # In the first cycle the other bench counts 1, too.
    _, shown = driven("1", cycles=40, first=1, **given)
    offers = [at for at, (_, payload, _) in enumerate(shown) if payload is not None]
    found = ran(probe, **given)
    assert seen(found, "payload") == [payload for _, payload, _ in shown if payload is not None] == PAYLOADS
    assert seen(found, "chunk") == [shown[at][0] for at in offers]
    # The first one comes some cycles behind the reset.
    assert seen(found, "gap")[1:] == [shown[at - 1][0] for at in offers][1:]
    idle = [after - before - 1 for before, after in pairwise(offers)]
    assert seen(found, "idle")[1:] == idle
    assert seen(found, "idle")[0] - seen(ran(probe, chunks=[1, 2, 3, 4]), "idle")[0] == offers[0]
    assert found.cycles == offers[-1] - offers[0] + 1


@pytest.mark.parametrize("clears", [[False], [True], [True, False], [False, False, True], [False] * 5 + [True, True]])
def test_machine_code_adds_up_what_counters_show_when_they_are_cleared(probe: Model, clears: list[bool]) -> None:
    found = ran(probe, clears=clears, pauses=[0, 1, 2, 3])
    assert found.counts == [len(PAYLOADS) * (at + 1) for at in range(len(COUNTERS))]
    assert (seen(found, "clears")[-1] > 0) == any(clears)
    # With a clear in every cycle, each payload is counted in the cycle of one; with none, none is.
    assert len(clears) > 1 or found.met_clears == len(PAYLOADS) * clears[0]
    assert found.met_clears <= len(PAYLOADS)


def test_machine_code_waits_as_long_as_a_simulator_for_what_is_missing_and_what_is_too_much(probe: Model) -> None:
    assert (PATIENCE, SURPLUS) == (400, 40)
    found = ran(probe, pauses=[0, 0, 0, PATIENCE - 2])
    assert found.accepted == 4
    assert ran(probe, pauses=[0, 0, 0, PATIENCE + 5]).accepted == 3


def test_machine_code_starts_every_episode_anew(probe: Model) -> None:
    words = np.array(PAYLOADS, np.uint64)
    scenario = Scenario("one", words, words, np.arange(4), ends=np.arange(4), pauses=np.array([0, 0, 0, 9]))
    scenario.episodes = np.array([[0, 0, 0], [1, 1, 2], [3, 3, 0]])
    first, second, third = probe.run(scenario)
    assert [seen(each, "payload") for each in (first, second, third)] == [[10], [11], [13]]
    assert (second.accepted, second.is_answered) == (1, True)
    assert seen(third, "idle")[0] == seen(first, "idle")[0] + 9
    assert first.counts == third.counts == [at + 1 for at in range(len(COUNTERS))]
