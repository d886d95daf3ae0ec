"""Every model of the zoo by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import nn

from tests.zoo import language, vision

MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet18": vision.resnet18,
    "mobilenet_v3_small": vision.mobilenet_v3_small,
    "vision_transformer": vision.vision_transformer,
    "swin_transformer": vision.swin_transformer,
    "spatial_transformer": vision.spatial_transformer,
    "gpt2": language.gpt2,
    "llama_sdpa": language.llama,
    "llama_eager": partial(language.llama, "eager"),
    "llama_checkpointed": partial(language.llama, checkpointed=True),
    "llama_checkpointed_reentrant": partial(language.llama, checkpointed=True, reentrant=True),
    "mixtral": language.mixtral,
    "bert": language.bert,
    "t5": language.t5,
    "whisper": language.whisper,
    "transformer": vision.Translator,
    "packed_lstm": partial(vision.PackedRecurrence, nn.LSTM),
    "packed_gru": partial(vision.PackedRecurrence, nn.GRU),
    "packed_rnn": partial(vision.PackedRecurrence, nn.RNN),
}
