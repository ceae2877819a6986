"""Shows what `weft export` wrote to its consumers: ONNX Runtime, OpenVINO, ONNX Runtime GenAI and Triton's schema."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import load_file


def golden(folder: Path) -> tuple[dict, dict]:
    tensors = load_file(folder / "io.safetensors")
    named = lambda start: {k[len(start):]: v for k, v in tensors.items() if k.startswith(start)}
    return named("in."), named("out.")


def feed(names: dict[str, list], given: dict) -> dict:
    """The inputs with those that begin a cache."""
    rows, length = given["input_ids"].shape
    made = {"position_ids": np.tile(np.arange(length, dtype=np.int64), (rows, 1)),
            "token_type_ids": np.zeros((rows, length), np.int64)}
    past = lambda shape: np.zeros((rows, shape[1], 0, shape[3]), np.float32)
    pick = lambda name: given.get(name, made.get(name))
    return {name: pick(name) if pick(name) is not None else past(shape) for name, shape in names.items()}


def agree(what: str, got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    error = float(np.abs(got.astype(np.float64) - want).max() / max(1, np.abs(want).max()))
    print(f"{what}: {error:.1e}")
    assert error <= tolerance, what


def onnx_runtime(folder: Path, tolerance: float) -> None:
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    given, want = golden(folder)
    names = {node.name: node.shape for node in session.get_inputs()}
    for name, got in zip(want, session.run(list(want), feed(names, given))):
        agree(f"onnxruntime {folder.name} {name}", got, want[name], tolerance)


def in_steps(encode, decode, inputs: dict[str, list], given: dict, ids: np.ndarray, choose=None) -> np.ndarray:
    """The logits of an encoder-decoder's steps: the ids but the last, then one by one; those that `choose` gives go behind."""
    states, cache, logits, at, part, cached = encode(given), {}, [], 0, ids[:, :-1], False
    if choose:
        part = ids
    while part.shape[1]:
        fixed = {"input_ids": part, "encoder_hidden_states": states, "use_cache_branch": np.array([cached]),
                 "encoder_attention_mask": given.get("attention_mask")}
        empty = lambda shape: np.zeros((ids.shape[0], shape[1], 0, shape[3]), np.float32)
        feed = {name: fixed[name] if name in fixed else cache.get(name, empty(shape)) for name, shape in inputs.items()}
        for name, value in decode(feed).items():
            if name == "logits":
                logits.append(value)
            elif not (cached and ".encoder." in name):
                cache[name.replace("present", "past_key_values")] = value
        at, cached = at + part.shape[1], True
        part = choose(logits[-1]) if choose else ids[:, at:]
    return np.concatenate(logits, axis=1)


def seq2seq_onnx(folder: Path):
    encoder, decoder = (onnxruntime.InferenceSession(folder / f"{name}.onnx", providers=["CPUExecutionProvider"])
                        for name in ("encoder_model", "decoder_model_merged"))
    names = [node.name for node in decoder.get_outputs()]
    encode = lambda given: encoder.run(["last_hidden_state"], {node.name: given[node.name] for node in encoder.get_inputs()})[0]
    return encode, lambda feed: dict(zip(names, decoder.run(names, feed))), {node.name: node.shape for node in decoder.get_inputs()}


def seq2seq_openvino(folder: Path):
    import openvino

    options = {"INFERENCE_PRECISION_HINT": "f32"}
    encoder, decoder = (openvino.Core().compile_model(folder / f"{name}.onnx", "CPU", options)
                        for name in ("encoder_model", "decoder_model_merged"))
    encode = lambda given: encoder({port.any_name: given[port.any_name] for port in encoder.inputs})[0].copy()
    decode = lambda feed: {port.any_name: value.copy() for port, value in decoder(feed).items()}
    length = lambda dim: dim.get_length() if dim.is_static else -1
    return encode, decode, {port.any_name: [length(d) for d in port.partial_shape] for port in decoder.inputs}


def seq2seq(folder: Path) -> None:
    given, want = golden(folder)
    for name, engine in {"onnxruntime": seq2seq_onnx, "openvino": seq2seq_openvino}.items():
        got = in_steps(*engine(folder), given, given["decoder_input_ids"])
        agree(f"{name} {folder.name} in steps", got, want["logits"], 1e-4)


def genai_hears(folder: Path, same: Path) -> None:
    """Whisper in GenAI chooses the tokens that its graphs for ONNX Runtime give, for features drawn at random."""
    import onnxruntime_genai

    model, count = onnxruntime_genai.Model(str(folder)), 20
    features = np.random.default_rng(0).standard_normal((1, 10, 3000)).astype(np.float32)
    ids = np.array([[257, 258, 262, 265]])
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=count, do_sample=False)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.set_model_input("input_features", features)
    generator.append_tokens(ids.astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    chosen = ids[0].tolist()

    def choose(logits: np.ndarray) -> np.ndarray:
        chosen.append(int(logits[0, -1].argmax()))
        return np.array([chosen[-1:]] if len(chosen) < count else [[]])

    in_steps(*seq2seq_onnx(same), {"input_features": features}, ids, choose)
    got = [int(token) for token in generator.get_sequence(0)]
    print(f"genai whisper: {got}")
    assert got == chosen, chosen


def openvino_reads(folder: Path) -> None:
    import openvino

    compiled = openvino.Core().compile_model(folder / "model.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    given, want = golden(folder)
    names = {port.any_name: [d.get_length() if d.is_static else -1 for d in port.partial_shape] for port in compiled.inputs}
    got = compiled(feed(names, given))
    for name in want:
        agree(f"openvino {folder.name} {name}", got[name], want[name], 1e-4)


def genai_generates(folder: Path) -> None:
    import onnxruntime_genai
    import tokenizers

    call = json.loads((folder / "task.json").read_text())["calls"][0]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode(call["inputs"]).ids
    model = onnxruntime_genai.Model(str(folder))
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(ids) + call["parameters"]["max_new_tokens"], do_sample=False)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(np.array([ids], dtype=np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    text = tokenizer.decode(generator.get_sequence(0).tolist())
    want = call["output"][0]["generated_text"]
    print(f"genai: {text!r}")
    assert text == want, want


def triton_parses(folder: Path) -> None:
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    for path in sorted(folder.glob("*/config.pbtxt")):
        config = text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())
        session = onnxruntime.InferenceSession(path.parent / "1" / "model.onnx")
        assert config.name == path.parent.name
        for given, nodes in (config.input, session.get_inputs()), (config.output, session.get_outputs()):
            shapes = {node.name: [d if isinstance(d, int) else -1 for d in node.shape] for node in nodes}
            assert {one.name: list(one.dims) for one in given} == shapes, shapes
        print(f"triton {config.name}: {[one.name for one in config.input]}")


if __name__ == "__main__":
    exports = Path(sys.argv[1])
    for name, tolerance in {"bert": 1e-4, "bert-linked": 1e-4, "bert-half": 1e-2, "roberta": 1e-4, "llama": 1e-4}.items():
        onnx_runtime(exports / name, tolerance)
    for name in ["bert", "roberta", "llama"]:
        openvino_reads(exports / name)
    for name in ["t5", "bart", "whisper-steps"]:
        seq2seq(exports / name)
    genai_generates(exports / "llama-genai")
    genai_hears(exports / "whisper-genai", exports / "whisper")
    triton_parses(exports / "repository")
    triton_parses(exports / "repository-t5")
