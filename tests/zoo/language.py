"""Tiny models of transformers, from configurations alone: no weights are loaded."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor, nn

from lab.speed.libraries import torchvision

os.environ["HF_HUB_OFFLINE"] = "1"
torchvision()  # transformers looks for it, and would fail where its operators do not load

import transformers  # noqa: E402

VOCABULARY = 48
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
#: Compilation by PyTorch takes seconds a layer. That a second one is compiled as the first is for Llama to show.
_ONE_LAYER = _SIZES | {"num_hidden_layers": 1}


class LanguageModel(nn.Module):
    """A model of transformers that returns its loss, and inputs for it."""

    def __init__(self, network: Any, names: tuple[str, ...] = ("input_ids", "labels")) -> None:
        super().__init__()
        self.network, self.names = network, names

    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(torch.randint(2, VOCABULARY, (2, 10)) for _ in self.names)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.network(**dict(zip(self.names, inputs, strict=True))).loss


def gpt2(attention: str = "sdpa") -> LanguageModel:
    settings = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=1,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=1,
        attn_implementation=attention,
        # The default, named: a model that warns of its absence is traced twice.
        loss_type="ForCausalLM",
    )
    return LanguageModel(transformers.GPT2LMHeadModel(settings))


def llama(attention: str = "sdpa", checkpointed: bool = False, reentrant: bool = False) -> LanguageModel:
    settings = transformers.LlamaConfig(**_SIZES, num_key_value_heads=2, attn_implementation=attention)
    network = transformers.LlamaForCausalLM(settings)
    if checkpointed:
        network.activation_checkpointing_enable({"use_reentrant": reentrant})
        network.enable_input_require_grads()
    return LanguageModel(network)


def mixtral() -> LanguageModel:
    settings = transformers.MixtralConfig(
        **_ONE_LAYER, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2
    )
    return LanguageModel(transformers.MixtralForCausalLM(settings))


def bert() -> LanguageModel:
    settings = transformers.BertConfig(**_ONE_LAYER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return LanguageModel(transformers.BertForMaskedLM(settings))


def t5() -> LanguageModel:
    settings = transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=1,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    return LanguageModel(transformers.T5ForConditionalGeneration(settings))


class _Whisper(LanguageModel):
    def inputs(self) -> tuple[Tensor, ...]:
        return torch.randn(2, 8, 32), torch.randint(2, VOCABULARY, (2, 10))


def whisper() -> LanguageModel:
    settings = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=8,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=16,
        max_target_positions=16,
        dropout=0.0,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    return _Whisper(transformers.WhisperForConditionalGeneration(settings), ("input_features", "labels"))
