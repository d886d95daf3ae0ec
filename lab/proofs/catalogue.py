"""All proofs, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from lab.proofs.along_model.induction import induction_proofs
from lab.proofs.along_vector.values import value_proofs
from lab.proofs.along_vector.waiting import waiting_proofs
from lab.proofs.axi_lite import axi_lite_proofs
from lab.proofs.axi_stream import axi_stream_proofs
from lab.proofs.block_stream import block_stream_proofs
from lab.proofs.blocks import block_proofs
from lab.proofs.control import control_proofs
from lab.proofs.converters import converter_proofs
from lab.proofs.counted import counted_proofs
from lab.proofs.counters import counter_proofs
from lab.proofs.engine_bounds import engine_bound_proofs
from lab.proofs.faults import PinnedFault, pinned_faults
from lab.proofs.flushed import flushed_proofs
from lab.proofs.lanes import lane_proofs
from lab.proofs.matrix_steady import matrix_proofs
from lab.proofs.matrix_values import matrix_value_proofs
from lab.proofs.mutants import CoreMutant, mutants
from lab.proofs.number_blocks import number_block_proofs
from lab.proofs.philox import philox_proofs
from lab.proofs.pipelines import pipeline_proofs
from lab.proofs.primitives import carry_proofs, copy_proofs, primitive_proofs
from lab.proofs.proof import Proof
from lab.proofs.steps import rounded_step_proofs, step_proofs
from lab.proofs.swamped import swamped_proofs
from lab.proofs.vector_control import vector_control_proofs
from lab.proofs.vector_steady import steady_proofs
from lab.proofs.widening import widening_proofs

__all__ = ["TIERS", "catalogue", "proofs", "select"]

TIERS = ("fast", "full")
Entry = Proof | CoreMutant | PinnedFault


def proofs() -> list[Proof]:
    """Return every proof."""
    return [
        *converter_proofs(),
        *step_proofs(),
        *rounded_step_proofs(),
        *lane_proofs(),
        *primitive_proofs(),
        *copy_proofs(),
        *carry_proofs(),
        *pipeline_proofs(),
        *philox_proofs(),
        *block_proofs(),
        *number_block_proofs(),
        *block_stream_proofs(),
        *widening_proofs(),
        *swamped_proofs(),
        *flushed_proofs(),
        *counter_proofs(),
        *control_proofs(),
        *counted_proofs(),
        *induction_proofs(),
        *axi_stream_proofs(),
        *axi_lite_proofs(),
        *vector_control_proofs(),
        *steady_proofs(),
        *waiting_proofs(),
        *value_proofs(),
        *matrix_proofs(),
        *matrix_value_proofs(),
        *engine_bound_proofs(),
    ]


def catalogue() -> list[Entry]:
    """Return every proof, and the changes to the units that test the proofs."""
    return [*proofs(), *mutants(), *pinned_faults()]


def select(tier: str, beginnings: Sequence[str]) -> list[Entry]:
    """Return the proofs of a tier whose ids match one of the beginnings, where ``*`` matches anything; all without any.

    Raises
    ------
    ValueError
        If no id matches one of the beginnings.
    """
    found = [proof for proof in catalogue() if tier == "full" or proof.fast]
    for each in beginnings:
        if not any(fnmatchcase(proof.id, f"{each}*") for proof in found):
            groups = ", ".join(dict.fromkeys(proof.id.partition("/")[0] for proof in found))
            raise ValueError(f"proofs: got {each!r}, must begin an id of the {tier} tier: {groups} (--list lists them)")
    return [proof for proof in found if not beginnings or any(fnmatchcase(proof.id, f"{each}*") for each in beginnings)]
