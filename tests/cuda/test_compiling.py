"""Kernels are compiled for every architecture, kept on disk, and made of the instructions that were meant."""

import os
import re
import stat
import sys
import tempfile
from collections import Counter
from itertools import cycle

import pytest

from golden import BF16, CBFLOAT16, FP16, FP32, Rounding
from golden.cuda import cache, compiling, variants
from golden.cuda.compiling import ARCHITECTURES, Resources, architecture_for, cache_folder, compiled, ptx, resources_in
from golden.cuda.scales import Steps, choose_for
from golden.formats import SIXTEEN_BIT_FORMATS

from ..golden.kernels.operands import ODD_ONES

EVEN = Rounding.NEAREST_EVEN
SCALED = Steps(EVEN, "scaled", "single")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep compiled kernels in a folder of the test, and none in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled.cache_clear()
    yield cache_folder()
    compiled.cache_clear()


@pytest.fixture
def nvrtc():
    return pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'cbfloat[cuda]'")


@pytest.fixture
def small(monkeypatch):
    """A source that compiles at once."""
    kernel = '#include "steps.h"\nextern "C" __global__ void only(float *x) { *x = 2.0f * *x; }\n'
    texts = {"kernels.cu": kernel, "steps.h": "#pragma once\n#include <cstdint>\n"}
    monkeypatch.setattr(compiling, "sources", lambda: dict(texts))
    return texts


# --- variants ---


def test_variants_have_names_of_their_own_and_are_all_that_a_product_may_ask_for():
    everything = variants.variants()
    assert len({variants.name_of(one) for one in everything}) == len(everything)
    formats = (*SIXTEEN_BIT_FORMATS, FP32, *ODD_ONES)
    asked = {
        choose_for((operand, inner, outer), chunk, mode, halves, brains).steps
        for operand in (CBFLOAT16, FP16, BF16, FP32)
        for inner in formats
        for outer in formats
        for chunk in (None, 32)
        for mode in Rounding
        for halves, brains in ((False, False), (True, True))
    }  # fmt: skip
    assert asked <= set(everything)


def test_numbers_of_kinds_are_those_of_the_header():
    kinds = re.search(r"enum class Kind \{ (.*) \};", compiling.sources()["variant.h"]).group(1)
    assert kinds.split(", ") == list(variants.KINDS)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bfloat16_steps_of_the_card_begin_with_sm_80(architecture):
    native = any("bfloat16" in one for one in variants.variants(architecture) if one)
    assert native == (architecture >= 80)


# --- cards and errors ---


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [
        ((7, 5), 75),
        ((8, 0), 80),
        ((8, 7), 86),
        ((8, 9), 89),
        ((9, 0), 90),
        ((10, 3), 100),
        ((12, 0), 120),
        ((12, 1), 120),
    ],
)
def test_architecture_for_a_card_is_the_latest_that_it_runs(capability, architecture):
    assert architecture_for(capability) == architecture


@pytest.mark.parametrize("capability", [(6, 1), (7, 0), (11, 0), (13, 0)])
def test_architecture_for_a_card_that_runs_none_says_which_there_are(capability):
    with pytest.raises(
        RuntimeError, match=r"device: got compute capability .*, must be one of 7\.5, 8\.x, 9\.x, 10\.x, 12\.x;"
    ):
        architecture_for(capability)


def test_compiled_for_an_unknown_architecture_says_which_there_are():
    with pytest.raises(ValueError, match="architecture: got 60, must be one of 75, 80"):
        compiled(None, 60)
    with pytest.raises(ValueError, match="architecture: got 75 for nearest_even-bfloat16-single, must be at least 80"):
        compiled(Steps(EVEN, "bfloat16", "single"), 75)


def test_compiled_without_nvrtc_says_what_to_install(monkeypatch):
    compiling._nvrtc.cache_clear()
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(
        ImportError, match=r"NVRTC, which is not installed; install it with pip install 'cbfloat\[cuda\]'"
    ):
        compiled(None, 90)


def test_compiled_source_with_an_error_tells_what_the_compiler_says(nvrtc, small):
    small["kernels.cu"] += "int wrong = missing;\n"
    with pytest.raises(RuntimeError, match=r"common for sm_90 does not compile(.|\n)*missing(.|\n)*undefined"):
        compiled(None, 90)


# --- the cache on disk ---


def test_compiled_variant_is_read_from_disk_the_next_time(nvrtc, small, folder, monkeypatch):
    first = compiled(None, 90)
    assert first.kernels["only"].registers > 0
    compiled.cache_clear()
    monkeypatch.setattr(compiling, "_compile", None)
    assert compiled(None, 90) == first
    assert [file.name.startswith("common-sm_90-") for file in folder.iterdir()] == [True]


@pytest.mark.parametrize("damage", [lambda whole: whole[:-5], lambda whole: b"", lambda whole: whole[:-1] + b"?"])
def test_kept_variant_that_is_not_whole_is_compiled_again(nvrtc, small, folder, damage):
    first = compiled(None, 90)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    compiled.cache_clear()
    assert compiled(None, 90) == first
    assert file.read_bytes() == whole


def test_changed_header_is_compiled_again(nvrtc, small, folder):
    compiled(None, 90)
    small["steps.h"] += "// changed\n"
    compiled.cache_clear()
    compiled(None, 90)
    assert len(list(folder.iterdir())) == 2


@pytest.fixture
def homeless(tmp_path, monkeypatch):
    """A user without a home folder, and the folder that temporary ones of this user are made in."""

    def unknown(_):
        raise KeyError

    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cache._temporary.cache_clear()
    yield tmp_path / f"cbfloat-{os.getuid()}"
    cache._temporary.cache_clear()


def test_cache_without_a_home_folder_is_a_temporary_one_of_the_user_with_one_warning(homeless):
    # RuntimeError: Could not determine home directory.
    with pytest.warns(UserWarning, match=r"^there is no home folder: compiled kernels are kept in .*XDG_CACHE") as said:
        assert cache_folder() == cache_folder() == homeless / "cbfloat" / "cuda"
    assert len(said) == 1
    assert stat.S_IMODE(homeless.stat().st_mode) == 0o700
    cache._temporary.cache_clear()
    with pytest.warns(UserWarning, match="no home folder"):
        assert cache_folder() == homeless / "cbfloat" / "cuda"  # of another process, the next time


@pytest.mark.parametrize("kind", ["another user's", "writable by others", "link", "file"])
def test_cache_without_a_home_folder_is_never_what_another_user_can_write(homeless, kind, monkeypatch):
    if kind == "another user's":
        homeless.mkdir(mode=0o700)
        another = os.getuid() + 1
        monkeypatch.setattr("os.getuid", lambda: another)
        homeless = homeless.rename(homeless.with_name(f"cbfloat-{another}"))
    elif kind == "file":
        homeless.touch()
    elif kind == "link":
        (homeless.parent / "elsewhere").mkdir()
        homeless.symlink_to(homeless.parent / "elsewhere")
    else:
        homeless.mkdir()
        homeless.chmod(0o777)
    with pytest.warns(UserWarning, match="no home folder"):
        base = cache_folder().parents[1]
    assert base != homeless
    assert base.parent == homeless.parent
    assert stat.S_IMODE(base.stat().st_mode) == 0o700


def test_folder_that_cannot_be_written_keeps_nothing(nvrtc, small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled(None, 90).kernels["only"].registers > 0


# --- what comes out ---

LOG = """ptxas info    : 172 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
ptxas         .     8 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 8 bytes cumulative stack size, 16384 bytes smem
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 34 registers, used 0 barriers
"""


def test_resources_are_read_from_the_assemblers_words():
    assert resources_in(LOG) == {"first": Resources(80, 36, 8, 16384), "second": Resources(34, 0, 0, 0)}


@pytest.mark.long
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_common_kernels_compile_for_every_architecture(nvrtc, architecture):
    found = compiled(None, architecture)
    assert set(found.kernels) == {"count_exponents", "pack", "round_blocks", "round_values", "softmax16"}
    assert found.image.startswith(b"\x7fELF")
    assert all(0 < taken.registers <= 255 and taken.shared <= 48 * 1024 for taken in found.kernels.values())


@pytest.mark.parametrize("architecture", [ARCHITECTURES[0], ARCHITECTURES[-1]])
def test_sums_of_other_machines_compile_for_the_oldest_and_the_newest_architecture(nvrtc, architecture):
    found = compiled(variants.MACHINE, architecture)
    assert set(found.kernels) == {"accumulate"}
    assert all(0 < taken.registers <= 128 and taken.spilled == 0 for taken in found.kernels.values())


@pytest.mark.long
@pytest.mark.parametrize("architecture", [ARCHITECTURES[0], ARCHITECTURES[-1]])
def test_products_compile_for_the_oldest_and_the_newest_architecture(nvrtc, architecture):
    found = compiled(SCALED, architecture)
    assert set(found.kernels) == {"multiply_128", "multiply_64", "multiply_32"}
    # A block of 256 threads has 64 Ki registers; two blocks of the smaller tiles run side by side.
    assert all(taken.registers <= 255 and taken.shared <= 48 * 1024 for taken in found.kernels.values())


@pytest.mark.turns
@pytest.mark.parametrize(("mode", "architecture"), list(zip(cycle(Rounding), ARCHITECTURES, strict=False)))
def test_products_that_count_compile_for_every_architecture(nvrtc, mode, architecture):
    (taken,) = compiled(Steps(mode, "counted", "none"), architecture).kernels.values()
    assert 0 < taken.registers <= 128  # two blocks of 256 threads have 64 Ki
    assert (taken.spilled, taken.stack) == (0, 0)


def test_counts_join_those_of_other_threads_by_atomic_instructions(nvrtc):
    found = set(re.findall(r"\b(?:atom|red)\.([.\w]+)", ptx(Steps(EVEN, "counted", "none"), 80)))
    assert found == {"global.add.u64", "global.max.u64"}
    common = set(re.findall(r"\b(?:atom|red)\.([.\w]+)", ptx(None, 80)))
    assert common == {"shared.add.u32", "global.add.u64"}


# The fused instructions of each kind of step: rm is down, rp up, rz toward zero, rn to nearest.
FUSED = {
    "single": ["rn.f32", "rz.f32", "rm.f32", "rp.f32", "rz.f64", "rm.f32 rp.f32", "rz.f64"],
    "scaled": ["rm.f32 rp.f32", "rz.f32", "rm.f32", "rp.f32", "rz.f32", "rm.f32 rp.f32", "rz.f64"],
    "generic": [""] * 7,
    "float16": ["rn.f16x2"],
    "bfloat16": ["rn.bf16x2"],
    "machine": [""],
    "none": [""] * 7,
    "counted": [""] * 7,  # in doubles
}


def fused(kind, mode):
    return set(FUSED[kind][mode.value].split())


# Every chain and every join in every mode; the nightly command compiles all pairs of them.
READ = [one for one in variants.variants() if one and one.join in ("none", "scaled", "generic") and
        one[1:] != ("single", "scaled")]  # fmt: skip


@pytest.mark.turns
@pytest.mark.parametrize("variant", READ, ids=variants.name_of)
def test_products_are_made_of_the_fused_instructions_of_their_steps(nvrtc, variant):
    text = ptx(variant, 80, "-DCBFLOAT_TILE=32")
    assert set(re.findall(r"\bfma\.([.\w]+)", text)) == fused(variant.chain, variant.mode) | fused(
        variant.join, variant.mode
    )
    assert ".ftz" not in text


def test_fused_instructions_of_another_direction_are_seen(nvrtc, monkeypatch):
    given = compiling.sources()
    given["lanes1.h"] = given["lanes1.h"].replace("return __fmaf_rd(a, b, c)", "return __fmaf_ru(a, b, c)")
    monkeypatch.setattr(compiling, "sources", lambda: given)
    text = ptx(Steps(Rounding.DOWN, "single", "none"), 80, "-DCBFLOAT_TILE=32")
    assert set(re.findall(r"\bfma\.([.\w]+)", text)) == {"rp.f32"}


def test_scaled_step_is_two_fused_instructions_the_second_where_the_first_is_even(nvrtc):
    text = ptx(SCALED, 80, "-DCBFLOAT_TILE=32")
    counts = Counter(re.findall(r"(@?\S* ?fma\.r[mp])\.f32", re.sub(r"[ \t]+", " ", text)))
    down, up = (sum(count for found, count in counts.items() if found.endswith(f"fma.{way}")) for way in ("rm", "rp"))
    assert down == up > 0
    assert sum(count for found, count in counts.items() if found.startswith("@")) == up


def test_kernels_with_other_modes_or_events_than_golden_do_not_compile(nvrtc, monkeypatch):
    (names,) = (option for option in compiling._OPTIONS if "NAMES" in option)
    for wrong in (names.replace(" down", ""), names.replace("overflow invalid", "invalid overflow")):
        assert wrong != names
        monkeypatch.setattr(
            compiling, "_OPTIONS", (*(each for each in compiling._OPTIONS if "NAMES" not in each), wrong)
        )
        with pytest.raises(RuntimeError, match=r"names\.h must list the modes and events of golden"):
            ptx(None, 90)
