"""The advisor: which level each layer of a model can take, by measured changes and modelled costs."""

from golden.torch.instruments.advise.advice import Advice, AdviceRow, Trial
from golden.torch.instruments.advise.search import advise

__all__ = ["Advice", "AdviceRow", "Trial", "advise"]
