"""The tests that judge the faults of each module, the quickest first."""

from __future__ import annotations

_ARRAYS = ("bad_input", "flags", "formats", "double_rounding", "matmul", "reductions", "softmax", "exact_fractions")
_NARROW = ("conversion_modes", "narrow_products", "narrow_formats")
_REFERENCE = ("reference_bad_input", "cli", "formats", "double_rounding", "reductions", "exact_fractions", "softmax")
_GOLDEN = {
    "golden/arrays/choices.py": ("conversion_modes",),
    "golden/arrays/operands.py": ("narrow_products",),
    "golden/arrays/randomness.py": ("philox", "modes_of_reductions"),
    "golden/arrays/chain.py": ("modes_of_reductions", *_ARRAYS),
    "golden/arrays/steps.py": ("modes_of_reductions", *_ARRAYS),
    "golden/arrays/pieces.py": _NARROW,
    "golden/arrays/tables.py": _NARROW,
    "golden/arrays/": (*_ARRAYS, *_NARROW),
    "golden/mx/": ("mx",),
    "golden/exact_mx.py": ("mx",),
    "golden/formats.py": ("formats", "reference_bad_input", "cli", "bad_input"),
    "golden/reduction.py": ("bad_input", "reference_bad_input", "reductions"),
    "golden/philox.py": ("philox",),
    "golden/rounding.py": ("modes_of_reductions", "rounding_modes"),
    "golden/reference.py": (*_REFERENCE, "rounding_modes", "modes_of_reductions"),
    "golden/exact.py": _REFERENCE,
    "golden/exact_rounding.py": (*_REFERENCE, "specials", "rounding_modes"),
    "golden/loss_scaling.py": ("loss_scaling",),
    "golden/cli.py": ("cli",),
    "golden/kernels/library.py": ("kernels/test_environment", "reference_bad_input"),
    "golden/kernels/flat.py": ("kernels/test_flat_arrays",),
    "golden/kernels/products.py": ("kernels/test_matmul_values", "kernels/test_products", "kernels/test_modes"),
}
_TORCH = {
    "functions/attention": ("attention",),
    "functions/contraction": ("contraction",),
    "functions/convolution": ("convolution",),
    "operators/draws": ("rounding_modes",),
    "operators/format_text": ("rounding_modes", "half", "narrow_factors"),
    "functions/gradients": ("faults", "gradients", "products"),
    "operators/registered": ("products", "gradients", "half", "narrow_factors"),
    "optim/weights": ("weights",),
    "functions/products": ("products", "contraction"),
    "settings/half": ("half", "products", "narrow_factors"),
    "settings/levels": ("levels",),
    "mx": ("mx",),
    "settings/scopes": ("levels", "precision"),
    "settings/precision": ("precision", "half"),
    "trainer": ("faults", "trainer", "trainer_resume"),
    "settings/configuration": ("mixed_precision", "trainer", "weights"),
    "amp/grad_scaler": ("grad_scaler", "grad_scaler_misuse", "grad_scaler_state"),
    "amp/gradients": ("grad_scaler", "optimizer_step"),
    "amp/initialize": ("initialize",),
    "amp/optimizer_step": ("optimizer_step",),
}


def tests_of(file: str) -> list[str]:
    """Return the test files that judge a module's faults, none if it is left out."""
    for start, names in _GOLDEN.items():
        if file.startswith(start):
            return [f"tests/golden/{name if '/' in name else 'test_' + name}.py" for name in names]
    module = file.removeprefix("golden/torch/").removesuffix(".py")
    return [f"tests/torch/test_{name}.py" for name in _TORCH.get(module, ())]
