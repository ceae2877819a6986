"""T5, and its encoder alone."""

from __future__ import annotations

from weft_reference.gguf_converters.converter import Converter

ENCODER = {
    "embedding_length": "d_model",
    "feed_forward_length": "d_ff",
    "block_count": "num_layers",
    "attention.head_count": "num_heads",
    "attention.key_length": "d_kv",
    "attention.value_length": "d_kv",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon": "layer_norm_epsilon",
    "attention.relative_buckets_count": "relative_attention_num_buckets",
}
DECODER = {"decoder_block_count": "num_decoder_layers", "decoder_start_token_id": "decoder_start_token_id"}


T5 = Converter("t5", ENCODER | DECODER, rope=False, fixed={"context_length": 512})


CONVERTERS = {
    "t5": T5,
    "mt5": T5,
    "umt5": T5,
    "t5encoder": Converter("t5encoder", ENCODER, rope=False, fixed={"context_length": 512}),
}
