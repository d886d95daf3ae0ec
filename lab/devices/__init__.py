"""Devices whose rules are known or not, judged blind by `golden.identify`.

``python -m lab.devices`` asks each of them, compares the verdict with what is known, and counts sums and seconds.
"""
