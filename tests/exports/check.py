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

    path = next(folder.glob("*/config.pbtxt"))
    config = text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())
    session = onnxruntime.InferenceSession(path.parent / "1" / "model.onnx")
    assert config.name == path.parent.name
    for given, nodes in (config.input, session.get_inputs()), (config.output, session.get_outputs()):
        shapes = {node.name: [d if isinstance(d, int) else -1 for d in node.shape] for node in nodes}
        assert {one.name: list(one.dims) for one in given} == shapes, shapes
    print(f"triton: {[one.name for one in config.input]}")


if __name__ == "__main__":
    exports = Path(sys.argv[1])
    for name, tolerance in {"bert": 1e-4, "bert-linked": 1e-4, "bert-half": 1e-2, "roberta": 1e-4, "llama": 1e-4}.items():
        onnx_runtime(exports / name, tolerance)
    for name in ["bert", "roberta", "llama"]:
        openvino_reads(exports / name)
    genai_generates(exports / "llama-genai")
    triton_parses(exports / "repository")
