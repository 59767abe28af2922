"""What is said beside predictions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from handmade_bundle import expected
from trusting_bundle import KNOWN, TARGETS, trusting

from molscore.bundle.reader import Bundle
from molscore.data.targets import Target
from molscore.errors import ConfigError, MolscoreError
from molscore.predict import judging
from molscore.predict.core import ChunkResult
from molscore.predict.layout import answers
from molscore.predict.models import Models
from molscore.predict.task import Task
from molscore.trust.options import PLAIN, TrustOptions


def predict(
    smiles: list[str], bundle: Bundle | None = None, **options: object
) -> tuple[Models, ChunkResult]:
    models = Models.open([bundle or trusting()], trust=TrustOptions(**options))
    return models, models.predict(Task(0, smiles), 16)


def rows(smiles: list[str], bundle: Bundle | None = None, **options: object) -> list[dict]:
    models, result = predict(smiles, bundle, **options)
    names = [*models.answer.predictions, *models.answer.extras, "status", "error"]
    return [dict(zip(names, row, strict=True)) for row in answers(result, models.answer)]


def test_intervals_follow_the_scale() -> None:
    small, large, bad = rows(["CCO", "CCCCCCO", "C1C"])
    for row, n_atoms in ((small, 3), (large, 7)):
        assert row["pred_y_lo"] == pytest.approx(row["pred_y"] - 2 * n_atoms)
        assert row["pred_y_hi"] == pytest.approx(row["pred_y"] + 2 * n_atoms)
    assert small["pred_y"] == pytest.approx(expected(list("CCO")) * 1.05)
    assert bad["pred_y_lo"] is None
    assert bad["similarity"] is None
    assert bad["status"] == "invalid_smiles"


def test_a_transform_is_undone_at_both_ends() -> None:
    target = Target(name="S", transform="log10")
    (row,) = rows(["CCO"], trusting((target,)))
    for end, side in (("lo", -1), ("hi", 1)):
        wanted = math.log10(row["pred_S"]) + side * 6
        assert math.log10(row[f"pred_S_{end}"]) == pytest.approx(wanted)


def test_a_level_that_too_few_scores_allow_has_no_interval() -> None:
    (row,) = rows(["CCO"], interval=0.99)
    assert row["pred_y_lo"] is None
    assert row["status"] == "ok"


def test_the_domain_is_told() -> None:
    known, odd, far, charged = rows(["CCO", "CC[Si]", "FC(F)(F)C(F)(F)F", "CC(=O)[O-]"])
    assert (known["similarity"], known["in_domain"], known["domain_note"]) == (1.0, "yes", "")
    assert odd["in_domain"] == "no"
    assert "element Si not in the training set" in odd["domain_note"]
    assert far["in_domain"] == "no"
    assert "no training molecule is nearer than 0.0" in far["domain_note"]
    assert charged["in_domain"] == "yes"


def test_neighbours_are_shown_with_their_values() -> None:
    (row,) = rows(["CCCCCCO"], neighbours=2)
    assert (row["neighbour_1"], row["neighbour_1_similarity"]) == ("CCCCCCO", 1.0)
    assert row["neighbour_1_y"] == 3.0
    assert row["neighbour_2"] in KNOWN
    assert row["neighbour_2_similarity"] < 1.0
    assert "neighbour_3" not in row


def test_more_neighbours_than_structures_are_as_many_as_there_are() -> None:
    (row,) = rows(["CCO"], neighbours=50)
    assert f"neighbour_{len(KNOWN)}" in row
    assert f"neighbour_{len(KNOWN) + 1}" not in row


def test_without_structures_strangers_are_still_named() -> None:
    bundle = trusting(structures=False)
    known, odd = rows(["CCO", "CCN"], bundle)
    assert (known["similarity"], known["in_domain"]) == (None, "")
    assert (odd["similarity"], odd["in_domain"]) == (None, "no")
    assert known["pred_y_hi"] == pytest.approx(known["pred_y"] + 6)
    with pytest.raises(ConfigError, match="carries no structures"):
        predict(["C"], bundle, neighbours=1)


def test_each_part_can_be_left_out() -> None:
    models, _ = predict(["C"], interval=0.0)
    assert models.answer.predictions == ["pred_y", "pred_y_sd"]
    models, _ = predict(["C"], domain=False)
    assert models.answer.extras == ()
    models = Models.open([trusting()], trust=PLAIN)
    assert models.predict(Task(0, ["C"]), 16).extras == [[]]


@pytest.mark.parametrize("options", [{"interval": 1.0}, {"interval": -0.1}, {"neighbours": -1}])
def test_options_are_checked(options: dict) -> None:
    with pytest.raises(ConfigError):
        TrustOptions(**options)


def test_several_models_are_told_apart() -> None:
    other = replace(trusting((Target(name="z"),), threshold=0.0), where="other.molscore")
    models = Models.open([trusting(), other], trust=TrustOptions())
    assert models.answer.extras == (
        *("similarity_hand", "in_domain_hand", "domain_note_hand"),
        *("similarity_other", "in_domain_other", "domain_note_other"),
    )
    result = models.predict(Task(0, ["CCF", "C1C"]), 16)
    assert len(result.extras[0]) == len(result.extras[1]) == 6
    assert np.isfinite(result.upper[0]).all()


def test_a_molecule_that_cannot_be_judged_keeps_its_prediction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = judging.fingerprint_many

    def odd(molecules: list) -> np.ndarray:
        if any(m.smiles == "CCF" for m in molecules):
            raise RuntimeError("odd")
        return whole(molecules)

    monkeypatch.setattr(judging, "fingerprint_many", odd)
    first, second = rows(["CCO", "CCF"])
    assert first["similarity"] == 1.0
    assert (second["similarity"], second["pred_y_lo"], second["status"]) == (None, None, "ok")
    assert second["pred_y"] is not None


def test_a_judgement_does_not_depend_on_the_chunk() -> None:
    smiles = ["CCO", "c1ccccc1O", "CC[N+](C)(C)C", "C" * 40, "bad"] * 20
    _, whole = predict(smiles, neighbours=3)
    for part in (slice(0, 1), slice(3, 50)):
        _, alone = predict(smiles[part], neighbours=3)
        assert alone.extras == whole.extras[part]
        np.testing.assert_array_equal(alone.lower, whole.lower[part])


def test_a_bundle_without_trust_says_nothing() -> None:
    bundle = replace(trusting(), arrays={})
    models, result = predict(["CCO"], bundle)
    assert models.answer.predictions == ["pred_y", "pred_y_sd"]
    assert models.answer.extras == ()
    assert result.status == ["ok"]
    assert TARGETS[0].name == "y"


def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(judging, "fingerprint_many", fail)
    with pytest.raises(MolscoreError, match="memory ran out"):
        predict(["CCO"])


def test_columns_that_hold_numbers_are_known() -> None:
    models, result = predict(["CCO"], neighbours=2)
    answer = models.answer
    assert len(answer.numeric) == len(answer.extras)
    for name, is_number, cell in zip(answer.extras, answer.numeric, result.extras[0], strict=True):
        assert is_number == isinstance(cell, float), name
