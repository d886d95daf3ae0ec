"""Tests of golden.torch.observe."""
