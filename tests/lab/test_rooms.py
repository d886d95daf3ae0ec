"""``python -m lab`` lists every room."""

from importlib.util import find_spec
from pathlib import Path

import lab
from lab.__main__ import main, rooms


def test_list_has_every_room_and_each_entry_runs(capsys):
    folders = {path.parent.name for path in Path(lab.__file__).parent.glob("*/__init__.py")}
    listed = rooms()
    assert {name.partition(".")[0] for name in listed} == folders
    assert all(listed.values())
    for name in listed:
        assert find_spec(f"lab.{name}" if "." in name else f"lab.{name}.__main__") is not None
    assert main() == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in listed)


def test_room_without_a_command_of_its_own_is_listed_by_its_modules():
    assert {"gpu.kernels", "gpu.speed", "gpu.whole"} <= set(rooms())
    assert "gpu" not in rooms()
