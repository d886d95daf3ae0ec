"""The configuration of a cluster, of which one entry means something without one: the precision level."""

from __future__ import annotations

from typing import Any

from golden.torch.cerebras.kinds import check_names
from golden.torch.common.arguments import checked_level
from golden.torch.common.notices import say_once

__all__ = ["CSConfig"]

_OF_THE_CLUSTER = (
    "act_memory_gi",
    "automount",
    "chf_memory_gi",
    "cmd_memory_gi",
    "compile_crd_memory_gi",
    "credentials_path",
    "debug_args",
    "disable_version_check",
    "enable_act_frequency",
    "execute_crd_memory_gi",
    "fabric_type_blacklist",
    "job_labels",
    "job_priority",
    "job_time_sec",
    "max_act_per_csx",
    "max_wgt_servers",
    "mgmt_address",
    "mgmt_namespace",
    "model_dirs",
    "mount_dirs",
    "notifications",
    "num_csx",
    "num_workers_per_csx",
    "python_paths",
    "transfer_processes",
    "use_cs_grad_accum",
    "wgt_memory_gi",
    "workflow_id",
    "wrk_memory_gi",
)


class CSConfig:
    """``CSConfig`` of the older releases and ``ClusterConfig`` of the newer: what a script says about its cluster.

    Parameters
    ----------
    precision_opt_level : int, optional
        Level 0, 1 or 2 of the runs that get this configuration; the model-wide level in force unless given.
    **cluster
        Settings for a cluster (``num_csx``, ``mount_dirs``, ``job_labels``, ...): kept, and reported once.

    Raises
    ------
    TypeError
        If a name is unknown or the level is not an int.
    ValueError
        If the level is not 0, 1 or 2.

    Examples
    --------
    >>> CSConfig(precision_opt_level=0).precision_opt_level
    0
    """

    def __init__(self, precision_opt_level: int | None = None, **cluster: Any) -> None:
        check_names(cluster, (*_OF_THE_CLUSTER, "precision_opt_level"), "the cluster's configuration")
        self.precision_opt_level = precision_opt_level
        for name, value in cluster.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "precision_opt_level":
            if value is not None:
                checked_level(value, name)
        else:
            check_names([name], _OF_THE_CLUSTER, "the cluster's configuration")
            say_once(f"{name}: is for a cluster; accepted, and without effect here")
        super().__setattr__(name, value)
