"""Help of every option that stands for a field of a configuration.

Kept apart from the configurations so that those stay free of anything about a command line.
A field without an entry here is not an option.
"""

from typing import Final, NamedTuple

from molscore.chem.policy import ChemPolicy
from molscore.config import Config
from molscore.data.records import TableOptions
from molscore.nn.config import TREES, ModelConfig
from molscore.nn.registry import block_names
from molscore.train.config import CLASSES, FINE_TUNING, TrainConfig
from molscore.train.student import StudentModel, StudentTraining
from molscore.trust.options import TrustOptions


class OptionText(NamedTuple):
    """What `--help` says of an option."""

    help: str
    metavar: str | None = None
    """None lets Typer show the type or the allowed values."""


_NETWORK: Final = {
    "plan": OptionText(
        "Depth plan: score, skip05, native, residual, or BLOCKSxSTEPS@DT such as 1x4@0.5.",
        "PLAN",
    ),
    "integrator": OptionText("How a contractive step is taken."),
    "readout": OptionText(
        "How a molecule is read off its atoms or bonds; the mlp has nothing to read off."
    ),
    "readout_steps": OptionText("Attention steps of the virtual node.", "N"),
    "width": OptionText("Width of every hidden state.", "N"),
    "dropout": OptionText("Probability of state dropout after each update.", "P"),
}
_HEAD_PLAN: Final = OptionText(
    "Depth plan of the head's hidden layers, as --plan and with the same --integrator and "
    "--dropout; none is one hidden layer.",
    "PLAN",
)
_OF_NETWORKS: Final = {
    "epochs": OptionText("Passes over the training part.", "N"),
    "batch_size": OptionText("Molecules a training step.", "N"),
    "learning_rate": OptionText("Top of the learning-rate schedule.", "RATE"),
    "warmup": OptionText("Share of the steps in which the rate climbs to its top.", "SHARE"),
    "weight_decay": OptionText("Weight decay of AdamW.", "X"),
    "clip": OptionText("Largest norm of a gradient.", "X"),
}
_EPOCHS: Final = OptionText(
    f"{_OF_NETWORKS['epochs'].help[:-1]}; not given, {CLASSES['epochs']} where every target is a "
    f"class and {FINE_TUNING['epochs']} with --from.",
    "N",
)
_THREADS: Final = OptionText("Threads an expert computes with; part of the result.", "N")

OPTION_TEXTS: Final[dict[type[Config], dict[str, OptionText]]] = {
    TableOptions: {
        "smiles_column": OptionText("Column that holds SMILES; found when not given.", "COLUMN"),
        "format": OptionText("Format of FILE; auto goes by suffix and content."),
        "separator": OptionText("Field separator of FILE; found when not given.", "CHAR"),
        "encoding": OptionText("Text encoding of FILE; found when not given.", "NAME"),
        "header": OptionText("Whether the first line names the columns; auto looks at it."),
        "decimal": OptionText("Decimal mark of numbers in FILE; auto looks at them."),
        "sheet": OptionText("Sheet of an xlsx file; the first when not given.", "NAME"),
    },
    TrustOptions: {
        "interval": OptionText(
            "Share of measured values that the intervals pred_TARGET_lo to pred_TARGET_hi are to "
            "hold; 0 leaves them out.",
            "SHARE",
        ),
        "domain": OptionText("Say how near a molecule is to the training set."),
        "neighbours": OptionText("Nearest training structures to show.", "N"),
    },
    ChemPolicy: {
        "salts": OptionText("Use every part of a salt, or the parent (largest part) alone."),
        "neutralize": OptionText("Remove charges that a proton can remove."),
        "stereo": OptionText("Keep or drop stereochemistry."),
        "tautomers": OptionText("Take tautomers as written, or the canonical one."),
    },
    ModelConfig: {
        "block": OptionText(
            f"Block family: {', '.join(block_names())}; or {TREES}, boosted trees on RDKit "
            "descriptors.",
            "NAME",
        ),
        **_NETWORK,
        "descriptors": OptionText(
            "Molecule-level descriptors the head also takes; auto is none, and rdkit for the "
            "mlp and the trees, which are made of them."
        ),
        "head_plan": _HEAD_PLAN,
        "blend": OptionText(
            "Also train boosted trees on RDKit descriptors, and average them with the network."
        ),
    },
    TrainConfig: {
        **_OF_NETWORKS | {"epochs": _EPOCHS},
        "iterations": OptionText("Trees a target, for --block catboost and --blend.", "N"),
        "folds": OptionText("Folds of the cross-validation, one expert each.", "K"),
        "repeats": OptionText("Experts a fold, which differ in their seed.", "R"),
        "split": OptionText(
            "How rows go to folds: random, scaffold, group:COLUMN or time:COLUMN.", "HOW"
        ),
        "seed": OptionText("The one seed everything is drawn from.", "N"),
        "freeze": OptionText("With --from, train the new head alone."),
        "threads": _THREADS,
    },
    StudentModel: {
        "block": OptionText(f"Block family of the student: {', '.join(block_names())}.", "NAME"),
        **_NETWORK,
        "descriptors": OptionText(
            "Molecule-level descriptors the head also takes, at more than the cost of all else; "
            "auto is none, and rdkit for the mlp, which is made of them."
        ),
        "head_plan": _HEAD_PLAN,
    },
    StudentTraining: {
        **_OF_NETWORKS,
        "seed": OptionText("What the students are drawn from; the folds are the model's.", "N"),
        "threads": _THREADS,
    },
}
