"""A loaded model for Python programs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from molscore.bundle.manifest import Manifest
from molscore.bundle.reader import Bundle, load_bundle
from molscore.errors import ConfigError, InputError
from molscore.predict.chunks import cut
from molscore.predict.layout import output_layout
from molscore.predict.models import Models
from molscore.predict.stream import predict_chunks

if TYPE_CHECKING:
    import pandas as pd


class Predictor:
    """A model, or several, ready to predict; made by `load`.

    Args:
        bundles: the checked models.
        engine: `onnx` or `torch`.
        device: of the torch engine.
        workers: processes for long lists; 1 stays in this process, 0 takes the CPUs.

    Raises:
        ConfigError: when the engine or the device cannot be used here, or the models not be
            told apart.
    """

    def __init__(
        self, bundles: Sequence[Bundle], *, engine: str, device: str, workers: int
    ) -> None:
        self._workers = workers
        self._models = Models.open(bundles, engine, device)

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """What each model says about itself: targets, units, training data, metrics."""
        return tuple(bundle.manifest for bundle in self._models.bundles)

    @property
    def manifest(self) -> Manifest:
        """What the model says about itself; of several, the first."""
        return self.manifests[0]

    @property
    def model_id(self) -> str:
        """The first 12 hex digits of the model file's SHA-256; of several, with + between."""
        return "+".join(bundle.model_id for bundle in self._models.bundles)

    def __repr__(self) -> str:
        models = " + ".join(repr(manifest.name) for manifest in self.manifests)
        names = ", ".join(target.name for target in self._models.targets)
        return f"Predictor({models}, targets: {names}, id {self.model_id})"

    def predict(self, smiles: "str | Sequence[str] | pd.Series[Any]") -> "pd.DataFrame":
        """Predict molecules.

        Args:
            smiles: one SMILES, or n of them. None and NaN are empty rows.

        Returns:
            n rows in the order given, with the index of a Series kept: `smiles`, then for each
            target `pred_TARGET` (in its unit; the probability of class 1 for a class) and
            `pred_TARGET_sd` (standard deviation of the experts, NaN for a single expert), then
            `status` (`ok`, `empty`, `invalid_smiles`, `unsupported`, `failed`) and `error` (the
            reason, "" for `ok`). A row without a prediction holds NaN.

        Raises:
            InputError: when something in `smiles` is not text.
        """
        import pandas as pd  # noqa: PLC0415 (0.6 s, and the command line does not need it)

        texts = _as_texts([smiles] if isinstance(smiles, str) else smiles)
        targets = self._models.targets
        frame = pd.DataFrame(
            {"smiles": texts}, index=smiles.index if isinstance(smiles, pd.Series) else None
        )
        results = list(predict_chunks(cut(iter(texts)), self._models, workers=self._workers))
        columns = output_layout(["smiles"], targets).columns[1:]
        for t in range(len(targets)):
            frame[columns[2 * t]] = [float(v) for r in results for v in r.values[:, t]]
            frame[columns[2 * t + 1]] = [float(v) for r in results for v in r.sd[:, t]]
        frame[columns[-2]] = [text for r in results for text in r.status]
        frame[columns[-1]] = [text for r in results for text in r.error]
        return frame


def load(
    model: str | Path | Sequence[str | Path],
    *,
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 1,
) -> Predictor:
    """Load a model, or several that predict in one pass over the molecules.

    Args:
        model: path of a `.molscore` file, or of several. A target name that several models
            have is followed by the name of the model's file: `pred_logS_old`, `pred_logS_new`.
        engine: `onnx` (the default; never imports torch) or `torch`.
        device: of the torch engine: `auto`, `cpu`, `cuda` or `mps`.
        workers: processes for long lists; 1 stays in this process, 0 takes the CPUs.

    Raises:
        BundleError: when the file is missing, damaged, too new or not to be trusted.
        ConfigError: when the engine or the device cannot be used here.
    """
    paths = [model] if isinstance(model, str | Path) else list(model)
    if not paths:
        raise ConfigError("no model is given")
    bundles = [load_bundle(path) for path in paths]
    return Predictor(bundles, engine=engine, device=device, workers=workers)


def _as_texts(values: "Sequence[str] | pd.Series[Any]") -> list[str]:
    """Return every value as text; what pandas calls missing (None, NaN, NA) becomes ""."""
    import pandas as pd  # noqa: PLC0415 (as above)

    # Of these, iteration gives keys, column names or numbers.
    keyed = isinstance(values, Mapping | bytes | bytearray) or getattr(values, "ndim", 1) != 1
    if keyed or not isinstance(values, Iterable):
        raise InputError(
            f"smiles: expected a SMILES or a list of them, got {type(values).__name__}; of a "
            "data frame give the column"
        )
    texts = []
    for position, value in enumerate(values):
        if isinstance(value, str):
            # Half of a surrogate pair is no character, and pandas refuses it.
            texts.append(value.encode(errors="backslashreplace").decode())
        elif pd.api.types.is_scalar(value) and pd.isna(value):
            texts.append("")
        else:
            raise InputError(
                f"smiles[{position}]: expected text, got {type(value).__name__} {value!r}"
            )
    return texts
