"""Devices with known and unknown rules, judged blind by `golden.identify`.

``python -m lab.devices`` identifies each of them, compares the verdict with the known rule, and counts the sums
and seconds.
"""
