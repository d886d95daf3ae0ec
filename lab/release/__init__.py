"""The files of a release, an archive of the sources and a wheel: built, and tested in empty environments.

``python -m lab.release`` makes both from a copy of the working tree and compares their contents with the tree. Then it
installs each into an empty environment, and compares the installed kernels with the contract.
"""
