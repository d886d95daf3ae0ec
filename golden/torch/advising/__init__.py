"""The advisor: which level each layer of a model can take, by measured changes and modelled costs."""

from golden.torch.advising.advice import Advice, AdviceRow, Trial
from golden.torch.advising.search import advise

__all__ = ["Advice", "AdviceRow", "Trial", "advise"]
