"""The zoo: one row an architecture. A row says how to build it small, with random weights, and what to feed it.

In: a row's name. Out: a model that gives `.loss` when asked for one, and a maker of inputs for a batch
size. Each row is a model class of `transformers`, what its configuration changes from the common
small sizes, and a kind of input (`feeds.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import families
import torch
from feeds import FEEDS

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SMALL, "num_key_value_heads": 2}
EXPERTS = {**GROUPED, "num_experts_per_tok": 2}
SEQ2SEQ = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}
WORDS2WORDS = {
    **SEQ2SEQ,
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
PATCHES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": 3,
}
SOUND = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "vocab_size": 23,
    "conv_dim": (16, 16),
    "conv_stride": (5, 4),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "mask_time_prob": 0.0,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One architecture.

    name: as in the table. model: a class of `transformers`, or a network of another `library`. feed: a row of `feeds.FEEDS`.
    config: what the model's configuration class is called with. call: keyword arguments of each call.
    """

    name: str
    model: str
    feed: str
    config: dict[str, Any] = field(default_factory=dict)
    call: dict[str, Any] = field(default_factory=dict)
    library: str = "transformers"


ROWS = (
    Row("bert", "BertForMaskedLM", "masked_words", SMALL),
    Row("roberta", "RobertaForMaskedLM", "masked_words", SMALL),
    Row("distilbert", "DistilBertForMaskedLM", "masked_words",
        {**SMALL, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    Row("albert", "AlbertForMaskedLM", "masked_words", {**SMALL, "embedding_size": 16}),
    Row("deberta", "DebertaV2ForMaskedLM", "masked_words",
        {**SMALL, "relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm",
         "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}),
    Row("electra", "ElectraForMaskedLM", "masked_words", {**SMALL, "embedding_size": 16}),
    Row("gpt2", "GPT2LMHeadModel", "words",
        {**SMALL, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    Row("gpt_neo", "GPTNeoForCausalLM", "words",
        {**SMALL, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
         "window_size": 4}),
    Row("gpt_neox", "GPTNeoXForCausalLM", "words", SMALL),
    Row("opt", "OPTForCausalLM", "words",
        {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    Row("bloom", "BloomForCausalLM", "words", {**SMALL, "n_layer": 2, "n_head": 4}),
    Row("llama", "LlamaForCausalLM", "words", GROUPED),
    Row("mistral", "MistralForCausalLM", "words", {**GROUPED, "sliding_window": 6}),
    Row("mixtral", "MixtralForCausalLM", "words", {**EXPERTS, "num_local_experts": 4}),
    Row("gemma", "GemmaForCausalLM", "words", {**GROUPED, "head_dim": 8}),
    Row("phi", "PhiForCausalLM", "words", GROUPED),
    Row("qwen2", "Qwen2ForCausalLM", "words", GROUPED),
    Row("qwen2_moe", "Qwen2MoeForCausalLM", "words",
        {**EXPERTS, "num_experts": 4, "moe_intermediate_size": 24,
         "shared_expert_intermediate_size": 24}),
    Row("falcon", "FalconForCausalLM", "words", {**SMALL, "new_decoder_architecture": False}),
    Row("t5", "T5ForConditionalGeneration", "word_pairs",
        {**SMALL, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
         "decoder_start_token_id": 0}),
    Row("bart", "BartForConditionalGeneration", "word_pairs", WORDS2WORDS),
    Row("pegasus", "PegasusForConditionalGeneration", "word_pairs", WORDS2WORDS),
    Row("mbart", "MBartForConditionalGeneration", "word_pairs", WORDS2WORDS),
    Row("whisper", "WhisperForConditionalGeneration", "spectrogram",
        {**WORDS2WORDS, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16}),
    Row("vit", "ViTForImageClassification", "image", PATCHES),
    Row("deit", "DeiTForImageClassification", "image", PATCHES),
    Row("swin", "SwinForImageClassification", "image",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2],
         "num_heads": [2, 4], "window_size": 4, "num_labels": 3}),
    Row("beit", "BeitForImageClassification", "image", PATCHES),
    Row("clip", "CLIPModel", "image_and_text",
        {"text_config": {**SMALL, "projection_dim": 16},
         "vision_config": {**PATCHES, "projection_dim": 16}, "projection_dim": 16},
        {"return_loss": True}),
    Row("segformer", "SegformerForSemanticSegmentation", "image_map",
        {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16],
         "patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2],
         "mlp_ratios": [2, 2], "decoder_hidden_size": 16, "num_labels": 3}),
    Row("convnext", "ConvNextForImageClassification", "image",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3}),
    Row("detr", "DetrForObjectDetection", "image_boxes",
        {**SEQ2SEQ, "num_queries": 5, "num_labels": 3, "use_timm_backbone": False,
         "use_pretrained_backbone": False, "backbone": None,
         "backbone_config": {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16],
                             "depths": [1, 1], "out_features": ["stage2"]}}),
    Row("wav2vec2", "Wav2Vec2ForCTC", "sound", SOUND),
    Row("hubert", "HubertForCTC", "sound", SOUND),
    Row("mamba", "MambaForCausalLM", "words",
        {**SMALL, "state_size": 4, "time_step_rank": 4, "use_mambapy": False}),
    Row("rwkv", "RwkvForCausalLM", "words", {**SMALL, "attention_hidden_size": 32}),
    Row("xlnet", "XLNetLMHeadModel", "masked_words",
        {"vocab_size": 61, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}),
    Row("longformer", "LongformerForMaskedLM", "masked_words",
        {**SMALL, "attention_window": [8, 8]}),
    Row("perceiver", "PerceiverForMaskedLM", "masked_words",
        {**SMALL, "max_position_embeddings": 12, "d_latents": 16, "d_model": 32, "num_latents": 6, "num_blocks": 1,
         "num_self_attends_per_block": 2, "num_self_attention_heads": 4,
         "num_cross_attention_heads": 4, "qk_channels": 16, "v_channels": 16}),
    Row("time_series", "TimeSeriesTransformerForPrediction", "series",
        {**SEQ2SEQ, "prediction_length": 4, "context_length": 8, "lags_sequence": [1, 2],
         "num_time_features": 2}),
)  # fmt: skip

FAST = ("bert", "gpt2", "llama", "t5", "vit", "convnext", "mixtral", "whisper")


def all_rows() -> tuple[Row, ...]:
    """Every architecture that can be built here."""
    found = families.found()
    more = [Row(f"{lib}/{name}", name, "picture", library=lib) for lib, name in found]
    return (*ROWS, *more)


def feed(row: Row, batch: int) -> dict[str, Any]:
    """The keyword arguments of one call."""
    return {**FEEDS[row.feed](batch), **row.call}


def build(row: Row, dropout: bool = False) -> torch.nn.Module:
    """The row's model with seeded random weights.

    dropout: leave the configuration's own rates; otherwise every `nn.Dropout` and every rate that a
    module keeps as a number is 0.
    """
    torch.manual_seed(0)
    model = _of_transformers(row) if row.library == "transformers" else families.classifier(row.library, row.model)  # fmt: skip
    if not dropout:
        for part in (getattr(model, "config", None), *model.modules()):
            _without_dropout(part)
    return model


def _of_transformers(row: Row) -> torch.nn.Module:
    import transformers

    model_class = getattr(transformers, row.model)
    model: torch.nn.Module = model_class(model_class.config_class(**row.config))
    return model


def _without_dropout(part: Any) -> None:
    if isinstance(part, torch.nn.modules.dropout._DropoutNd):
        part.p = 0.0
    for name, value in list(getattr(part, "__dict__", {}).items()):
        if isinstance(value, float) and ("drop" in name or name == "p"):
            setattr(part, name, 0.0)
