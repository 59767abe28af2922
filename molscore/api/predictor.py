"""A loaded model for Python programs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from molscore.bundle.manifest import Manifest
from molscore.bundle.reader import Bundle, load_bundle
from molscore.bundle.shipped import DEFAULT_MODEL
from molscore.data.foreign import encodable
from molscore.errors import ConfigError, InputError
from molscore.predict.chunks import cut
from molscore.predict.layout import answers, output_layout
from molscore.predict.models import Models
from molscore.predict.stream import predict_chunks
from molscore.trust.options import TrustOptions

if TYPE_CHECKING:
    import pandas as pd


class Predictor:
    """A model, or several, ready to predict; made by `load`.

    Args:
        bundles: the checked models.
        engine: `onnx` or `torch`.
        device: of the torch engine.
        workers: processes for long lists; 1 stays in this process, 0 takes the CPUs.
        trust: what to say beside a prediction.

    Raises:
        ConfigError: when the engine or the device cannot be used here, the models not be told
            apart, or neighbours shown.
    """

    def __init__(
        self,
        bundles: Sequence[Bundle],
        *,
        engine: str,
        device: str,
        workers: int,
        trust: TrustOptions,
    ) -> None:
        self._workers = workers
        self._models = Models.open(bundles, engine, device, trust)

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
            `pred_TARGET_sd` (standard deviation of the experts, NaN for a single expert) and,
            where the model has intervals, `pred_TARGET_lo` and `pred_TARGET_hi`; then what else
            the model can say (`similarity` to the nearest training molecule, `in_domain`,
            `domain_note`, neighbours); then `status` (`ok`, `empty`, `invalid_smiles`,
            `unsupported`, `failed`) and `error` (the reason, "" for `ok`). A row without a
            prediction holds NaN.

        Raises:
            InputError: when something in `smiles` is not text.
        """
        import pandas as pd  # noqa: PLC0415 (0.6 s, and the command line does not need it)

        texts = _as_texts([smiles] if isinstance(smiles, str) else smiles)
        results = list(predict_chunks(cut(iter(texts)), self._models, workers=self._workers))
        answer = self._models.answer
        layout = output_layout(["smiles"], answer)
        rows = [row for result in results for row in answers(result, answer)]
        columns: dict[str, Any] = {"smiles": texts}
        for i, name in enumerate(layout.columns[1:]):
            cells = [row[i] for row in rows]
            columns[name] = np.array(cells, dtype=np.float64) if name in layout.numbers else cells
        return pd.DataFrame(columns, index=smiles.index if isinstance(smiles, pd.Series) else None)


def load(
    model: str | Path | Sequence[str | Path] = DEFAULT_MODEL,
    *,
    engine: str = "onnx",
    device: str = "auto",
    workers: int = 1,
    interval: float = TrustOptions.interval,
    domain: bool = TrustOptions.domain,
    neighbours: int = TrustOptions.neighbours,
) -> Predictor:
    """Load a model, or several that predict in one pass over the molecules.

    Args:
        model: path of a `.molscore` file or name of a shipped model, or several. A target name
            that several models have is followed by the name of the model's file:
            `pred_logS_old`, `pred_logS_new`.
        engine: `onnx` (the default; never imports torch) or `torch`.
        device: of the torch engine: `auto`, `cpu`, `cuda` or `mps`.
        workers: processes for long lists; 1 stays in this process, 0 takes the CPUs.
        interval: the share of measured values that intervals are to hold; 0 for none.
        domain: say how near a molecule is to the training set.
        neighbours: nearest training structures to show.

    Raises:
        BundleError: when the file is missing, damaged, too new or not to be trusted.
        ConfigError: when the engine or the device cannot be used here.
    """
    paths = [model] if isinstance(model, str | Path) else list(model)
    if not paths:
        raise ConfigError("no model is given")
    bundles = [load_bundle(path) for path in paths]
    trust = TrustOptions(interval=interval, domain=domain, neighbours=neighbours)
    return Predictor(bundles, engine=engine, device=device, workers=workers, trust=trust)


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
            texts.append(encodable(value))  # pandas refuses what is no character
        elif pd.api.types.is_scalar(value) and pd.isna(value):
            texts.append("")
        else:
            raise InputError(
                f"smiles[{position}]: expected text, got {type(value).__name__} {value!r}"
            )
    return texts
