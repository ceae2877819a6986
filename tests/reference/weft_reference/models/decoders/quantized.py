"""Llamas, and a GPT-2, in the formats of quantized weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transformers import GPT2Config, GptOssConfig, LlamaConfig

from weft_reference.cases import Case
from weft_reference.models.decoders.family import TINY, batch
from weft_reference.quantized import Quantize, QuantizedCase, awq, bitsandbytes, compressed_tensors, fp4, fp8, gptq, others

SIZES = TINY | {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1}


def llama(name: str, notes: str, quantization: dict[str, Any], quantize: Quantize, **more: Any) -> Case:
    return QuantizedCase(
        f"llama/quantized-{name}",
        "LlamaForCausalLM",
        LlamaConfig(**(SIZES | more.pop("sizes", {}))),
        batch("right"),
        notes,
        quantization=quantization,
        quantize=quantize,
        **more,
    )


def gptq_cases() -> Iterator[Case]:
    for bits in (2, 3, 4, 8):
        yield llama(f"gptq-{bits}", f"GPTQ, {bits} bits, groups of 32.", gptq.config(bits, 32), gptq.quantize(bits, 32))
    second = gptq.config(4, 32, checkpoint_format="gptq_v2", sym=True)
    yield llama("gptq-v2", "Version 2, symmetric.", second, gptq.quantize(4, 32, second=True, symmetric=True))
    act = gptq.config(4, 32, desc_act=True)
    yield llama("gptq-desc-act", "Groups of columns that are no neighbours.", act, gptq.quantize(4, 32, order="sorted"))
    yield llama("gptq-uneven", "Groups that differ in size.", act, gptq.quantize(4, 32, order="uneven"))
    yield llama("gptq-channel", "One group a row, no g_idx.", gptq.config(8, -1), gptq.quantize(8, -1, order="none"))
    older = {"bits": 4, "group_size": 32, "desc_act": False, "sym": False}
    notes = "quantize_config.json of older tools."
    yield llama("gptq-older", notes, older, gptq.quantize(4, 32), beside="quantize_config.json")
    own = {"o_proj": (8, 16)}
    dynamic = gptq.config(4, 32, dynamic={r"+:.*\.o_proj.*": {"bits": 8, "group_size": 16}})
    yield llama("gptq-dynamic", "A module of other bits and groups.", dynamic, gptq.quantize(4, 32, overrides=own))
    yield QuantizedCase(
        "gpt2/quantized-gptq",
        "GPT2LMHeadModel",
        GPT2Config(**{name: size for name, size in SIZES.items() if name not in ("intermediate_size", "num_key_value_heads")}),
        batch("right"),
        "Weights that lie the other way (Conv1D), the square one too.",
        quantization=gptq.config(4, 32),
        quantize=gptq.quantize(4, 32),
    )


def integers() -> Iterator[Case]:
    yield llama("awq", "AWQ, groups of 32.", awq.config(32), awq.quantize(32))
    older = {"w_bit": 4, "q_group_size": 32, "zero_point": True, "version": "GEMM"}
    yield llama("awq-older", "quant_config.json of older tools.", older, awq.quantize(32), beside="quant_config.json")
    tensors = compressed_tensors
    for bits in (3, 4, 8):
        quantized = tensors.quantize(bits, 32)
        yield llama(f"compressed-{bits}", f"pack-quantized, {bits} bits.", tensors.config(bits, 32), quantized)
    asymmetric = tensors.config(4, 32, symmetric=False)
    yield llama("compressed-zeros", "Packed zero points.", asymmetric, tensors.quantize(4, 32, symmetric=False))
    older = tensors.quantize(3, 32, older=True)
    yield llama("compressed-3-older", "Ten codes of three bits a word.", tensors.config(3, 32), older)
    whole = tensors.config(8, -1, form="int-quantized")
    yield llama("compressed-int8", "int-quantized, one scale a row.", whole, tensors.quantize(8, -1, whole=True))


def floats() -> Iterator[Case]:
    edges = (48, 40)
    yield llama("fp8", "Blocks of 48 by 40, partial at the edges.", fp8.config(edges), fp8.quantize(edges))
    powers = fp8.quantize((32, 32), "scale", power=True)
    yield llama("fp8-powers", "Scales that are powers of two.", fp8.config((32, 32), scale_fmt="ue8m0"), powers)
    whole = fp8.quantize(None, "weight_scale")
    yield llama("fp8-tensor", "One scale a tensor.", fp8.config(None, activation_scheme="static"), whole)
    rows = compressed_tensors.config(8, -1, form="float-quantized", type="float")
    yield llama("compressed-fp8", "float-quantized, one scale a row.", rows, fp8.quantize((1, 10**6), "weight_scale"))
    micro = fp4.config("mxfp4-pack-quantized", "group", 32)
    yield llama("compressed-mxfp4", "MXFP4.", micro, fp4.mxfp4)
    nvidia = fp4.config("nvfp4-pack-quantized", "tensor_group", 16)
    yield llama("compressed-nvfp4", "NVFP4.", nvidia, fp4.nvfp4)
    for kind in ("nf4", "fp4"):
        yield llama(f"bitsandbytes-{kind}", kind, bitsandbytes.config(kind), bitsandbytes.four(kind))
    nested = bitsandbytes.four("nf4", nested=True)
    yield llama("bitsandbytes-nested", "Scales in 8 bits.", bitsandbytes.config("nf4", nested=True), nested)
    yield llama("bitsandbytes-int8", "int8 by rows.", bitsandbytes.config("int8"), bitsandbytes.int8)


def experts() -> Iterator[Case]:
    sizes = SIZES | {"intermediate_size": 32, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2}
    yield QuantizedCase(
        "gpt_oss/quantized-mxfp4",
        "GptOssForCausalLM",
        GptOssConfig(**sizes),
        batch("right"),
        "Experts in MXFP4, all else as it is.",
        quantization={"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]},
        experts=fp4.experts,
    )


def rest() -> Iterator[Case]:
    torchao = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig"}}}
    yield llama("torchao-int4", "Int4Tensor.", torchao, others.torchao_int4)
    yield llama("torchao-int8", "IntxUnpackedToInt8Tensor.", torchao, others.torchao_int8)
    for name, bits, group, whole, axis in (
        ("hqq-4", 4, 32, False, 1),
        ("hqq-4-whole", 4, 16, True, 1),
        ("hqq-3", 3, 32, False, 1),
        ("hqq-2", 2, 16, False, 1),
        ("hqq-8", 8, 64, False, 1),
        ("hqq-axis-0", 4, 64, False, 0),
    ):
        sizes = {"weight_quant_params": {"nbits": bits, "group_size": group, "axis": axis}}
        quantization = {"quant_method": "hqq", "quant_config": sizes, "skip_modules": ["lm_head"]}
        notes = f"{bits} bits, groups of {group} along axis {axis}."
        yield llama(name, notes, quantization, others.hqq(bits, group, whole, axis))
    for name, bits, group, whole in (
        ("quanto-4", 4, 32, False),
        ("quanto-4-whole", 4, 32, True),
        ("quanto-2", 2, None, False),
        ("quanto-8", 8, None, False),
    ):
        quantization = {"quant_method": "quanto", "weights": f"int{bits}", "modules_to_not_convert": ["lm_head"]}
        yield llama(name, f"{bits} bits.", quantization, others.quanto(bits, group, whole))
    bitnet = {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline"}
    yield llama("bitnet", "The scale divides.", bitnet, others.bitnet(False))
    auto = bitnet | {"linear_class": "autobitlinear"}
    yield llama("bitnet-auto", "The scale multiplies.", auto, others.bitnet(True))


def goldens() -> Iterator[Case]:
    yield from gptq_cases()
    yield from integers()
    yield from floats()
    yield from experts()
    yield from rest()
