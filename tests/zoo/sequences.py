"""Models of PyTorch's own modules for sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Translator(nn.Module):
    """`nn.Transformer`, as PyTorch has it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Transformer(32, 4, 1, 1, 48, dropout=0.0, batch_first=True)

    def inputs(self) -> tuple[Tensor, ...]:
        return torch.randn(2, 6, 32), torch.randn(2, 5, 32)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], target.device)
        return self.network(source, target, tgt_mask=mask, tgt_is_causal=True).float().square().mean()


class PackedRecurrence(nn.Module):
    """Sentences of several lengths through an LSTM, GRU or RNN."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.network = kind(8, 12, num_layers=2, bidirectional=True, batch_first=True)

    def inputs(self) -> tuple[Tensor, ...]:
        return torch.randn(3, 3, 8), torch.tensor([3, 2, 1])

    def forward(self, sentences: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(sentences, lengths.cpu(), batch_first=True)
        output, _ = self.network(packed)
        return nn.utils.rnn.pad_packed_sequence(output, batch_first=True)[0].float().square().mean()
