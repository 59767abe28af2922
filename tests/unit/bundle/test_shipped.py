"""The models that come with the package."""

import re
import tomllib
from pathlib import Path

import pytest

import molscore
from molscore.api import list_models
from molscore.bundle.reader import load_bundle
from molscore.bundle.shipped import DEFAULT_MODEL, find_model, shipped_folder, shipped_models
from molscore.errors import BundleError
from molscore.trust.stored import read_trust

PACKAGE = Path(molscore.__file__).parent


def test_the_default_is_there_and_comes_first() -> None:
    assert next(iter(shipped_models())) == DEFAULT_MODEL
    assert [model["name"] for model in list_models()] == list(shipped_models())


@pytest.mark.parametrize("name", shipped_models())
def test_each_says_how_far_to_trust_it_and_has_a_card(name: str) -> None:
    bundle = load_bundle(name)
    assert bundle.path == shipped_models()[name]
    trust = read_trust(bundle)
    assert trust is not None
    assert trust.structures is not None
    assert all(interval is not None for interval in trust.intervals)
    assert all(target.unit and target.note for target in bundle.manifest.targets)
    card = (shipped_folder() / f"{name}.md").read_text()
    (metrics,) = bundle.manifest.metrics.values()
    for key in ("rmse", "mae", "r2", "spearman"):
        assert f" {metrics['mean'][key]:.3f} " in card
        assert f" {metrics['sd'][key]:.3f} " in card
    said = metrics["interval"]
    for share in (said["coverage"], *said["coverage_by_difficulty"]):
        assert f"{share * 100:.1f} %" in card
    assert f"{metrics['domain']['rmse_outside']:.2f}" in card


def test_they_are_small_enough_for_a_wheel() -> None:
    assert sum(path.stat().st_size for path in shipped_models().values()) < 10e6


def test_nothing_in_the_working_directory_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(DEFAULT_MODEL).write_text("mine")
    assert find_model(DEFAULT_MODEL) == shipped_models()[DEFAULT_MODEL]
    Path(DEFAULT_MODEL).unlink()
    Path(DEFAULT_MODEL).mkdir()
    assert load_bundle(DEFAULT_MODEL).path == shipped_models()[DEFAULT_MODEL]


def test_what_is_neither_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BundleError, match=f"no such model: nothing; .*{DEFAULT_MODEL}"):
        load_bundle("nothing")
    for path in ("aqsol.molscore", "models/aqsol"):
        with pytest.raises(BundleError, match="no such model"):
            load_bundle(path)
    with pytest.raises(BundleError, match="cannot read"):
        load_bundle("a" * 300)


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        ".".join(path.parent.relative_to(PACKAGE.parent).parts)
        for path in PACKAGE.rglob("__init__.py")
    }
    assert set(settings["packages"]) == folders | {"molscore.models"}
    assert settings["package-dir"] == {"molscore.models": "models"}


def test_the_card_names_the_command_of_the_bundle() -> None:
    manifest = load_bundle(DEFAULT_MODEL).manifest
    card = (shipped_folder() / f"{DEFAULT_MODEL}.md").read_text()
    (target,) = manifest.targets
    assert f'--unit "{target.unit}" --note "{target.note}"' in card
    assert manifest.training["table"] == "aqsoldb.csv"
    digits = re.sub(r"\D", "", f"{manifest.training['counts']['rows_used']:,}")
    assert f"{int(digits):,} rows of AqSolDB" in card
