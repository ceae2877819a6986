"""Checks of the reference's own tools: `python tests/reference/self_test.py`. Needs no model library but numpy."""

from __future__ import annotations

import json
import math
import tempfile
import unittest
from pathlib import Path

import numpy as np

from weft_reference import sources, specs, vectors, weights
from weft_reference.files import Report, difference, sync, to_json, to_safetensors

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"


class Sources(unittest.TestCase):
    def test_a_family_depends_on_what_it_imports_and_on_nothing_else(self) -> None:
        files = sources.imported(sources.files("weft_reference.models.bert"))
        named = {path.relative_to(sources.PACKAGE).as_posix() for path in files}
        self.assertLessEqual({"models/bert/draw.py", "cases.py", "weights.py", "files.py"}, named)
        self.assertNotIn("models/whisper.py", named)

    def test_contents_change_with_a_byte_and_with_a_name(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "base"
            folder.mkdir()
            (folder / "a").write_bytes(b"1")
            first = sources.contents([folder])
            (folder / "a").write_bytes(b"2")
            second = sources.contents([folder])
            (folder / "a").rename(folder / "b")
            self.assertEqual(len({first, second, sources.contents([folder])}), 3)


class Specs(unittest.TestCase):
    def test_relatives_are_those_that_reach_a_known_model(self) -> None:
        parent = {"mistral": "llama", "near": "mistral", "own": "mistral", "far": "bert", "loop": "pool", "pool": "loop"}
        self.assertEqual(specs.relatives({"llama", "own"}, parent), ["mistral", "near"])

    def test_parents_are_read_from_the_specs(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            (folder / "one.yaml").write_text("title: One\nextends: llama  # a word\n")
            (folder / "two.yaml").write_text('title: Two\nextends: "gpt2"\n')
            (folder / "none.yaml").write_text("title: extends\nsummary: >-\n  extends: nothing\n")
            self.assertEqual(specs.parents(folder), {"one": "llama", "two": "gpt2"})
        self.assertEqual(specs.parents()["mistral"], "llama")


class WeightRule(unittest.TestCase):
    def test_vectors_are_the_ones_in_the_goldens(self) -> None:
        kept = json.loads((GOLDENS / "weight_rule.json").read_text(encoding="utf-8"))
        self.assertEqual(json.loads(to_json(vectors.vectors())), kept)

    def test_distributions_have_their_moments(self) -> None:
        drawn = weights.values("encoder.layer.0.dense.weight", (1024, 256))
        self.assertAlmostEqual(float(drawn.std()), 1 / math.sqrt(256), places=3)
        self.assertAlmostEqual(float(drawn.mean()), 0.0, places=3)
        drawn = weights.values("bn.running_var", (4096,))
        self.assertTrue(drawn.min() >= 0.5 and drawn.max() < 1.5)

    def test_names_and_salts_matter(self) -> None:
        a, b = weights.values("a.weight", (8,)), weights.values("b.weight", (8,))
        self.assertFalse(np.array_equal(a, b))
        self.assertFalse(np.array_equal(a, weights.values("a.weight", (8,), salt=1)))

    def test_fields(self) -> None:
        self.assertEqual(
            weights.fields("h.0.wte.weight"), {"path": ".h.0.wte.weight", "leaf": "weight", "owner": "wte"}
        )
        self.assertEqual(weights.fields("a.Latents.3")["owner"], "latents")
        self.assertEqual(weights.fields("weight")["owner"], "")
        self.assertEqual(weights.fields("x.0.bias")["owner"], "bias")

    def test_patterns(self) -> None:
        for pattern, text, fits in (
            ("*", "", True),
            ("wte", "wte", True),
            ("wte", "wtex", False),
            ("*_token", "cls_token", True),
            ("*_token", "tokens", False),
            ("lambda_q*", "lambda_q1", True),
            ("*bias*", "a_bias_u", True),
        ):
            self.assertEqual(weights.matches(pattern, text), fits, (pattern, text))


class Files(unittest.TestCase):
    def test_json_keeps_every_float32(self) -> None:
        numbers = weights.values("x", (64,))
        again = json.loads(to_json({"numbers": numbers, "flag": np.bool_(True), "count": np.int64(3)}))
        self.assertTrue(np.array_equal(np.array(again["numbers"], np.float32), numbers))
        self.assertIs(again["flag"], True)
        self.assertEqual(again["count"], 3)
        with self.assertRaises(ValueError):
            to_json([float("nan")])

    def test_only_differences_that_matter(self) -> None:
        one = np.ones((2, 3), np.float32)
        old = to_safetensors({"out.x": one})
        self.assertIsNone(difference("io.safetensors", old, to_safetensors({"out.x": one + np.float32(1e-6)})))
        self.assertIn("off by", difference("io.safetensors", old, to_safetensors({"out.x": one + 1})) or "")
        self.assertIn("one side", difference("io.safetensors", old, to_safetensors({"out.y": one})) or "")
        self.assertIsNone(difference("a.json", b'{"score": 0.5}', b'{"score": 0.5000001}'))
        self.assertIn("/score", difference("a.json", b'{"score": 0.5}', b'{"score": 0.6}') or "")
        self.assertIn("keys", difference("a.json", b'{"a": 1, "b": 1}', b'{"b": 1, "a": 1}') or "")

    def test_sync_writes_removes_and_checks(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            out = Path(temporary)
            (out / "bert" / "old").mkdir(parents=True)
            (out / "bert" / "old" / "case.json").write_text("{}")
            wanted = {"bert/base/case.json": b"{}\n"}
            report = Report()
            sync(wanted, out, True, report, whole=["bert"])
            self.assertEqual(len(report.changed), 2)
            self.assertFalse((out / "bert" / "base").exists())
            sync(wanted, out, False, Report(), whole=["bert"])
            self.assertEqual([path.name for path in (out / "bert").iterdir()], ["base"])
            report = Report()
            sync(wanted, out, True, report, whole=["bert"])
            self.assertEqual((report.same, report.changed), (1, []))


if __name__ == "__main__":
    unittest.main()
