"""The files of a release: an archive of the sources and a wheel, made and tried in environments of their own.

``python -m lab.release`` makes both from a copy of the working tree, compares what they hold with the tree, installs
each into an empty environment, and compares the installed kernels with the contract.
"""
