"""What does this device compute? Its sums are asked for, explained, and matched with a model (NUMERICS section 14)."""

from golden.identification.findings import Finding
from golden.identification.fit import Candidate
from golden.identification.identified import Identified
from golden.identification.identify import identify

__all__ = ["Candidate", "Finding", "Identified", "identify"]
