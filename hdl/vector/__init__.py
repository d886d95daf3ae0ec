"""The SIMD multiply-accumulate unit: several lanes of `hdl.mac` under one control."""
