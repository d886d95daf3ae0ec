"""``cstorch.backends``: flags of a backend, of which the precision level means something without a wafer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golden.torch.cerebras.kinds import check_names
from golden.torch.common.notices import say_once
from golden.torch.settings import levels

__all__ = ["backends", "swap_flags"]


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
    """Set flags by their paths below `backends`, such as ``csx.debug.drop_data``; return what they were.

    Raises
    ------
    TypeError
        If there is no such flag.
    """
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
