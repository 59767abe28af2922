"""A bundle written by the first schema stays readable and means the same.

`bundle_schema_1.molscore` was written once (by `handmade_bundle.bundle_bytes`, two experts,
targets below) and is never regenerated: a change that cannot read it needs a migration.
"""

from pathlib import Path

import pytest

from molscore.bundle.reader import load_bundle
from molscore.predict.core import predict_chunk
from molscore.predict.engine import OnnxEngine

STORED = Path(__file__).with_name("bundle_schema_1.molscore")


def test_it_is_read_and_predicts_as_it_did() -> None:
    bundle = load_bundle(STORED)
    assert bundle.sha256.startswith("9aa872d9d25a")
    assert [t.name for t in bundle.manifest.targets] == ["S", "toxic"]
    result = predict_chunk(["CCO", "C", "c1ccccc1O"], 0, bundle, OnnxEngine(bundle))
    assert result.status == ["ok"] * 3
    # log10 S = sum over atoms of (code + 1) / 100, C is code 4 and O code 6; the second
    # expert has 1.1 times that. The classes' logits have 0.1 more an atom.
    s = [(10**x + 10 ** (1.1 * x)) / 2 for x in (0.17, 0.05, 0.37)]
    assert result.values[:, 0].tolist() == pytest.approx(s, rel=1e-6)
    assert result.values[:, 1].tolist() == pytest.approx(
        [0.6209149, 0.5392933, 0.7545024], rel=1e-6
    )
