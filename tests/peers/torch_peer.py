"""PyTorch in eager mode: `transformers` with the attention that it chooses by itself.

    python tests/peers/torch_peer.py DIR [--threads 2] [--generate N]

DIR is what `checkpoints.py` wrote. Encoder-decoders generate with `generate`, decoders in the shortest loop that there is:
a forward pass a token over the cache. Serves as `serving.py` says.
"""

from __future__ import annotations

import json
import time
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file
from torch.utils.flop_counter import FlopCounterMode
from transformers import GenerationMixin

from serving import Round, arguments, say, serve, steps


def as_taken(model: Any, inputs: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Inputs as the class takes them: SDXL's UNet some in a dictionary, Z-Image's transformer lists."""
    if type(model).__name__ == "ZImageTransformer2DModel":
        return {"x": list(inputs["x"]), "t": inputs["t"], "cap_feats": list(inputs["cap_feats"])}
    added = {name: value for name, value in inputs.items() if name in ("text_embeds", "time_ids")}
    others = {name: value for name, value in inputs.items() if name not in added}
    return others | ({"added_cond_kwargs": added} if added else {})


def forward(model: Any, inputs: dict[str, torch.Tensor]) -> Round:
    given = as_taken(model, inputs)

    def once() -> dict[str, float]:
        began = time.perf_counter()
        model(**given)
        return {"run": (time.perf_counter() - began) * 1e3}

    return once


def generation(model: Any, inputs: dict[str, torch.Tensor], count: int) -> Round:
    """Greedy, and not ended before its time. Whisper's own `generate` adds searches of its own; this is the plain one."""
    model.generation_config.eos_token_id = None

    def once() -> dict[str, float]:
        began = time.perf_counter()
        made = GenerationMixin.generate(model, **inputs, max_new_tokens=count, do_sample=False, num_beams=1)
        ms = (time.perf_counter() - began) * 1e3
        if made.shape[1] != count + 1:
            raise ValueError(f"made {made.shape[1] - 1} tokens")
        return {"run": ms}

    return once


def cached(model: Any, cache: transformers.DynamicCache) -> dict[str, Any]:
    """A cache, which models of states alone call by another name, and logits of the last position alone."""
    parameters = signature(model.forward).parameters
    name = "cache_params" if "cache_params" in parameters else "past_key_values"
    return {name: cache, "use_cache": True, "logits_to_keep": 1}


def decoder(model: Any, inputs: dict[str, torch.Tensor], count: int) -> Round:
    prompt = {name: value for name, value in inputs.items() if name != "attention_mask"}

    def once() -> dict[str, float]:
        cache = transformers.DynamicCache(config=model.config)

        def run(given: dict[str, torch.Tensor]) -> int:
            logits = model(**given, **cached(model, cache)).logits
            return int(logits[0, -1].argmax())

        return steps(lambda: run(prompt), lambda token: run({"input_ids": torch.tensor([[token]])}), count)

    return once


def kinds_of_tokens(model: Any, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Which tokens stand for images, for models that do not see it from the ids themselves."""
    if "mm_token_type_ids" not in signature(model.forward).parameters:
        return {}
    return {"mm_token_type_ids": (inputs["input_ids"] == model.config.image_token_id).long()}


def counted(once: Any) -> int:
    """The operations of matrix products and convolutions."""
    counter = FlopCounterMode(display=False)
    with counter:
        once()
    return counter.get_total_flops()


def work(model: Any, inputs: dict[str, torch.Tensor], count: int, size: int, once: Round) -> dict[str, dict[str, int]]:
    """What each measure takes at least: operations, and bytes of weights of a type of `size` bytes, each read once a step.

    Embeddings are looked up, and not read, but where they are the head's weights too; of experts a token reads those that it is
    routed to, and a prompt all.
    """
    total = sum(weight.numel() for weight in model.parameters())
    head, table = (model.get_output_embeddings(), model.get_input_embeddings()) if count else (None, None)
    looked_up = table.weight.numel() if table is not None and (head is None or head.weight is not table.weight) else 0
    read = (total - looked_up) * size
    if not count:
        return {"run": {"flops": counted(once), "bytes": read}}
    if model.config.is_encoder_decoder:
        encoder = model.get_encoder().parameters()
        encoder = sum(weight.numel() for weight in encoder if weight is not table.weight) * size
        return {"run": {"flops": counted(once), "bytes": encoder + count * (read - encoder)}}
    cache = transformers.DynamicCache(config=model.config)
    prompt = counted(lambda: model(**inputs, **cached(model, cache)))
    token = counted(lambda: model(input_ids=torch.tensor([[0]]), **cached(model, cache)))
    return {"prefill": {"flops": prompt, "bytes": read}, "token": {"flops": token, "bytes": read - unrouted(model) * size}}


def unrouted(model: Any) -> int:
    """Parameters of the experts that a token is not routed to."""
    count = getattr(model.config, "num_local_experts", None)
    if count is None:
        return 0
    experts = sum(weight.numel() for weight in model.parameters() if weight.ndim == 3 and weight.shape[0] == count)
    return experts - experts * model.config.num_experts_per_tok // count


def stored(checkpoint: Path) -> torch.dtype:
    """The type of the weights, in which `transformers` computes by itself (`dtype="auto"`)."""
    file = next(checkpoint.glob("*model*.safetensors"))
    with safe_open(file, "pt") as tensors:
        return tensors.get_tensor(next(iter(tensors.keys()))).dtype


def opened(config: dict[str, Any], checkpoint: Path, dtype: torch.dtype) -> Any:
    """The class that the file names, of `transformers` or of `diffusers`, in the type that the checkpoint is stored in."""
    if "_class_name" in config:
        import diffusers

        model = getattr(diffusers, config["_class_name"]).from_pretrained(checkpoint, torch_dtype=dtype)
    else:
        model = getattr(transformers, config["architectures"][0]).from_pretrained(checkpoint, dtype=dtype)
    return model.eval().requires_grad_(False)


def main() -> None:
    options = arguments(__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = json.loads((options.checkpoint / "config.json").read_text())
    began = time.perf_counter()
    dtype = stored(options.checkpoint)
    model = opened(config, options.checkpoint, dtype)
    load_ms = (time.perf_counter() - began) * 1e3
    tensors = load_file(options.checkpoint / "inputs.safetensors")
    floating = {name: tensor.to(dtype) for name, tensor in tensors.items() if tensor.is_floating_point()}
    inputs = {name.removeprefix("in."): tensor for name, tensor in (tensors | floating).items()}
    inputs |= kinds_of_tokens(model, inputs)
    if not options.generate:
        once = forward(model, inputs)
    elif model.config.is_encoder_decoder:
        once = generation(model, inputs, options.generate)
    else:
        once = decoder(model, inputs, options.generate)
    version = f"{torch.__version__}, transformers {transformers.__version__}"
    attention = getattr(model.config, "_attn_implementation", None)
    least = work(model, inputs, options.generate, dtype.itemsize, once)
    say(ready=True, peer="pytorch", version=version, attention=attention, load_ms=load_ms, work=least)
    serve(once)


if __name__ == "__main__":
    main()
