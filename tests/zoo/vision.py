"""Tiny models of torchvision, with every layer of the published ones, and models of PyTorch's modules for sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lab.speed.libraries import torchvision


class Classifier(nn.Module):
    """An image classifier with its loss and inputs."""

    def __init__(self, network: nn.Module, size: int = 32) -> None:
        super().__init__()
        self.network, self.size = network, size

    def inputs(self) -> tuple[Tensor, Tensor]:
        return torch.randn(2, 3, self.size, self.size), torch.tensor([0, 1])

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.network(images), labels)


def resnet18() -> Classifier:
    """One block of each size instead of two: with and without a convolution beside it."""
    resnet = torchvision().models.resnet
    return Classifier(resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=10))


def mobilenet_v3_small() -> Classifier:
    """The first five of the published eleven blocks: every kind; the other six repeat these kinds."""
    mobilenet = torchvision().models.mobilenetv3
    blocks, last_channel = mobilenet._mobilenet_v3_conf("mobilenet_v3_small")
    return Classifier(mobilenet.MobileNetV3(blocks[:5], last_channel, num_classes=10, dropout=0.0))


def vision_transformer() -> Classifier:
    network = torchvision().models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=1, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10
    )
    nn.init.normal_(network.heads.head.weight)  # zero at first: nothing before it would get a gradient
    return Classifier(network)


def swin_transformer() -> Classifier:
    network = torchvision().models.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=16,
        depths=[2, 1],  # the second of the first two shifts its windows
        num_heads=[2, 4],
        window_size=[4, 4],
        stochastic_depth_prob=0.0,
        num_classes=10,
    )
    return Classifier(network)


class SpatialTransformer(nn.Module):
    """Jaderberg et al. 2015: a network that says how to turn and stretch its input, then looks at that."""

    def __init__(self) -> None:
        super().__init__()
        self.localisation = nn.Sequential(nn.Conv2d(3, 4, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 6))
        self.classifier = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 10))

    def forward(self, images: Tensor) -> Tensor:
        theta = self.localisation(images).float().view(-1, 2, 3)
        grid = nn.functional.affine_grid(theta, list(images.shape), align_corners=False)
        return self.classifier(nn.functional.grid_sample(images, grid.float(), align_corners=False))


def spatial_transformer() -> Classifier:
    return Classifier(SpatialTransformer(), size=16)


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
