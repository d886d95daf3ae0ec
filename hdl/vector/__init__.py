"""The SIMD multiply-accumulate unit: `hdl.mac`'s lane several times, under one control."""
