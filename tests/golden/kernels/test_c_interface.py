"""The library called from C, as a test bench would: the header is plain C, and the results equal Python's."""

import hashlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from golden import CBFLOAT16, encode, kernels, matmul
from golden.kernels import library

from ..judges import assert_same_bits
from .build import SOURCE

#: Of the declarations of kernels.h, by the header's version: a library of another version is refused when it is loaded.
DECLARED = {5: "cc46720c9aaf051b"}

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "kernels.h"

int main(void) {
    const float a[6] = {1.5f, -0.1f, 1000.0f, 0.3f, 7e-12f, -2.0f}, b[6] = {0.1f, 3.0f, -1.0f, 0.25f, 1e9f, 0.7f};
    const int64_t cbfloat16 = CBFLOAT_FORMAT(6, 9, 31), float32 = CBFLOAT_FORMAT(8, 23, 127);
    uint16_t codes[2][6], back[6];
    uint32_t result[4];
    float values[6], rounded[6];
    cbfloat_encode(CBFLOAT_PORTABLE, 1, cbfloat16, 6, a, 32, codes[0]);
    cbfloat_encode(CBFLOAT_PORTABLE, 1, cbfloat16, 6, b, 32, codes[1]);
    cbfloat_decode(CBFLOAT_PORTABLE, 1, cbfloat16, 6, codes[0], values);
    cbfloat_quantize(CBFLOAT_PORTABLE, 1, cbfloat16, 6, a, 32, rounded);
    cbfloat_convert(CBFLOAT_PORTABLE, 1, float32, cbfloat16, 6, rounded, back);
    for (int i = 0; i < 6; i++)
        if (values[i] != rounded[i] || back[i] != codes[0][i]) return 2;
    const struct cbfloat_product product = {
        .path = CBFLOAT_PORTABLE, .threads = 1, .mode = CBFLOAT_MATMUL, .operand = cbfloat16, .inner = cbfloat16,
        .outer = float32, .result_format = float32, .chunk = 32, .batches = 1, .m = 2, .n = 2, .k = 3,
        .a = {codes[0], 3, 1, 0}, .b = {codes[1], 2, 1, 0}, .result = result};
    if (!cbfloat_path_available(CBFLOAT_PORTABLE) || cbfloat_path_available(99) || cbfloat_multiply(&product)) return 3;
    const struct cbfloat_rounding unknown[2] = {{.steps = 7, .random_bits = 1}, {.last = -1, .random_bits = 1}};
    for (int i = 0; i < 2; i++)
        if (cbfloat_multiply_rounded(&product, 0, 0, &unknown[i]) != 2) return 5;
    if (strcmp(cbfloat_names(), NAMES)) return 6;
    for (int i = 0; i < 4; i++) printf("%08x\n", (unsigned)result[i]);
    return cbfloat_kernels_version() == CBFLOAT_KERNELS_VERSION ? 0 : 4;
}
"""


@pytest.mark.skipif(len(kernels.paths()) == 1, reason="no compiled library")
def test_c_program_links_the_library_and_gets_the_same_product(tmp_path):
    program, executable = tmp_path / "program.c", tmp_path / "program"
    program.write_text(f'#define NAMES "{library.NAMES}"\n{PROGRAM}', encoding="utf-8")
    file = library._library()._name
    command = [shutil.which("cc"), "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", str(SOURCE)]
    subprocess.run([*command, str(program), file, "-o", str(executable)], check=True, timeout=60)
    said = subprocess.run([str(executable)], capture_output=True, text=True, check=True, timeout=60).stdout
    a = encode(np.float32([[1.5, -0.1, 1000.0], [0.3, 7e-12, -2.0]]), CBFLOAT16)
    b = encode(np.float32([[0.1, 3.0], [-1.0, 0.25], [1e9, 0.7]]), CBFLOAT16)
    with kernels.use("numpy"):
        wanted = matmul(a, b, operand=CBFLOAT16)
    got = np.array([int(line, 16) for line in said.split()], np.uint32).reshape(2, 2)
    assert_same_bits(got, wanted)


def test_declarations_that_change_have_another_version():
    text = re.sub(r"/\*.*?\*/", "", (SOURCE / "kernels.h").read_text(encoding="utf-8"), flags=re.S)
    version = int(re.search(r"define CBFLOAT_KERNELS_VERSION (\d+)", text)[1])
    assert {version: hashlib.sha256("".join(text.split()).encode()).hexdigest()[:16]} == DECLARED
