"""Options of backends: kinds, `CSConfig`, flags. Requests that only a wafer could fulfil are accepted and reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Any

from golden.nearest import did_you_mean
from golden.torch.common.arguments import checked_level
from golden.torch.common.terminal import say_once
from golden.torch.settings import levels

__all__ = ["OPTIONS", "BackendType", "CSConfig", "backends", "check_names", "swap_flags"]


class BackendType(Enum):
    """CPU, GPU or CSX, as a script names it; all three compute the same bits here."""

    CPU = auto()
    GPU = auto()
    CSX = auto()

    @property
    def is_cpu(self) -> bool:
        """Whether it is CPU."""
        return self is BackendType.CPU

    @property
    def is_gpu(self) -> bool:
        """Whether it is GPU."""
        return self is BackendType.GPU

    @property
    def is_csx(self) -> bool:
        """Whether it is CSX."""
        return self is BackendType.CSX

    @staticmethod
    def from_str(backend_type: str) -> BackendType:
        """Return the kind of that name, in upper or lower case; TypeError or ValueError if there is none."""
        if not isinstance(backend_type, str):
            raise TypeError(f"backend_type: got {backend_type!r}, must be 'CPU', 'GPU' or 'CSX'")
        try:
            return BackendType[backend_type.upper()]
        except KeyError:
            raise ValueError(f"backend_type: got {backend_type!r}, must be 'CPU', 'GPU' or 'CSX'") from None


#: Kind -> the options that its backend takes beside `artifact_dir`.
OPTIONS = {
    BackendType.CPU: ("mixed_precision",),
    BackendType.GPU: ("enable_distributed", "main_process_id", "dist_backend", "init_method", "sync_batchnorm"),
    BackendType.CSX: (
        "compile_dir",
        "compile_only",
        "validate_only",
        "cluster_config",
        # of older releases
        "drop_data",
        "log_initialization",
        "max_checkpoints",
        "micro_batch_size",
        "retrace_every_iteration",
        "use_cs_grad_accum",
    ),
}


def check_names(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise TypeError, with the nearest known name, if a name is not among the known ones."""
    known = sorted(known)
    for name in given:
        if name not in known:
            must = f"must be one of {', '.join(known)}{did_you_mean(name, known)}"
            raise TypeError(f"{name}: {where} has no such parameter, {must}")


_OF_THE_CLUSTER = """
    act_memory_gi automount chf_memory_gi cmd_memory_gi compile_crd_memory_gi credentials_path debug_args
    disable_version_check enable_act_frequency execute_crd_memory_gi fabric_type_blacklist job_labels job_priority
    job_time_sec max_act_per_csx max_wgt_servers mgmt_address mgmt_namespace model_dirs mount_dirs notifications
    num_csx num_workers_per_csx python_paths transfer_processes use_cs_grad_accum wgt_memory_gi workflow_id
    wrk_memory_gi
"""


class CSConfig:
    """``CSConfig`` of the older releases and ``ClusterConfig`` of the newer: the description of a cluster by a script.

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
        check_names(cluster, [*_OF_THE_CLUSTER.split(), "precision_opt_level"], "the cluster's configuration")
        self.precision_opt_level = precision_opt_level
        for name, value in cluster.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "precision_opt_level":
            if value is not None:
                checked_level(value, name)
        else:
            check_names([name], _OF_THE_CLUSTER.split(), "the cluster's configuration")
            say_once(f"{name}: is for a cluster; accepted, and without effect here")
        super().__setattr__(name, value)


class _Group:
    """Flags under one name: known ones can be read and set, an unknown one is an error."""

    def __init__(self, path: str, **flags: Any) -> None:
        vars(self).update(_path=path, _first=dict(flags), **flags)

    def __setattr__(self, name: str, value: Any) -> None:
        check_names([name], self._first, self._path)
        if isinstance(self._first[name], _Group):
            raise AttributeError(f"{name}: is a group of flags of {self._path}; set one of its flags")
        say_once(f"{self._path}.{name}: is for a wafer; accepted, and without effect here")
        vars(self)[name] = value

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name}: {vars(self)['_path']} has no such flag")

    def reset(self) -> None:
        """Give every flag its first value again."""
        for name, value in self._first.items():
            if isinstance(value, _Group):
                value.reset()
            else:
                vars(self)[name] = value


class _Precision(_Group):
    """The one group with an effect: its level is the model-wide level of the process."""

    def __init__(self) -> None:
        super().__init__("backends.csx.precision", optimization_level=None)
        del vars(self)["optimization_level"]

    def __getattr__(self, name: str) -> Any:
        return levels._Process.level if name == "optimization_level" else super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        check_names([name], self._first, self._path)
        levels.set_model_level(value)

    def reset(self) -> None:
        levels.set_model_level(1)


_CSX = _Group(
    "backends.csx",
    precision=_Precision(),
    performance=_Group(
        "backends.csx.performance",
        micro_batch_size="auto",
        transfer_processes=5,
        max_transfer_bytes=None,
        compress_weights=False,
        use_speculative_optimizers=True,
    ),
    cluster=_Group("backends.csx.cluster", auto_taint=False),
    storage=_Group("backends.csx.storage", s3=_Group("backends.csx.storage.s3", profile=None)),
    debug=_Group(
        "backends.csx.debug",
        ini=None,
        debug_args=None,
        drop_data=False,
        lazy_initialization=True,
        skip_weight_init=False,
        optimize_initialization=True,
        log_initialization=True,
        retrace_every_iteration=False,
        implicit_cast_cb16_to_fp32=False,
        save_gpv=False,
        check_constraints=False,
        op_definition_module=None,
        skip_connectivity_check=False,
        fabric_type_blacklist=None,
        compile_crd_memory_gi=None,
        execute_crd_memory_gi=None,
        wrk_memory_gi=None,
        act_memory_gi=None,
        cmd_memory_gi=None,
        wgt_memory_gi=None,
        chf_memory_gi=None,
    ),
)

#: ``backends.csx.precision.optimization_level`` is the model-wide level; others are accepted and reported once.
backends = _Group("backends", csx=_CSX)


def swap_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Set flags by their paths below `backends`, such as ``csx.debug.drop_data``; return their former values."""
    before = {}
    for path, value in given.items():
        group: Any = backends
        *groups, name = path.split(".")
        for each in groups:
            check_names([each], [name for name, flag in group._first.items() if isinstance(flag, _Group)], group._path)
            group = getattr(group, each)
        check_names([name], group._first, group._path)
        before[path] = getattr(group, name)
        setattr(group, name, value)
    return before
