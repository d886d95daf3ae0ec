"""golden.torch exports the agreed names, and says what to install where PyTorch is missing."""

import subprocess
import sys
from pathlib import Path

import golden
import golden.torch as cstorch

ROOT = Path(golden.__file__).resolve().parent.parent

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None  # as if it were not installed
try:
    import golden.torch
except ModuleNotFoundError as error:
    print(error.name, error)
"""


def test_import_without_pytorch_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ("torch golden.torch needs PyTorch, which is not installed: pip install 'cbfloat[train]'\n")


def test_import_leaves_the_compiler_of_pytorch_alone():
    program = "import sys, golden.torch; print('torch._dynamo' in sys.modules, 'torch._inductor' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False False\n"


def test_public_names_exist():
    names = """pol current_pol matmul linear bmm conv1d conv2d scaled_dot_product_attention precision
    is_cbfloat16_tensor precision_from_yaml Trainer MixedPrecision RunStopped
    get_half_dtype get_half_dtype_str set_half_dtype mixed_precision"""
    for name in names.split():
        assert callable(getattr(cstorch, name)), name
        assert name in cstorch.__all__
    assert list(cstorch.__all__) == sorted(cstorch.__all__)
