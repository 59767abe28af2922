"""How a written structure becomes the structure a model sees.

A policy is chosen at training, stored in the bundle and applied unchanged at prediction.
"""

from dataclasses import dataclass
from typing import Final, Literal

from molscore.config import Config

MAX_ATOMS: Final = 1000
"""Most heavy atoms a molecule may have; dense n x n matrices and the InChI stay affordable."""

MAX_RINGS: Final = 200
"""Most independent rings; in a closed net of more, RDKit finds millions of equal ones."""

MAX_SMILES_LENGTH: Final = 40 * MAX_ATOMS
"""Most characters of a SMILES, so that a runaway cell is refused before it is parsed."""


@dataclass(frozen=True, kw_only=True)
class ChemPolicy(Config):
    """The choices of standardisation.

    Attributes:
        salts: `whole` keeps every fragment; `parent` keeps one: a fragment with carbon before
            one without, then the most heavy atoms, then the largest mass, then the first
            canonical SMILES, so the choice does not depend on how the SMILES was written.
        neutralize: bring acids and bases to their neutral form where a hydrogen can move
            (RDKit `Uncharger`); permanent charges stay.
        stereo: `drop` removes tetrahedral and double-bond stereo before anything else.
        tautomers: `canonical` replaces the structure by RDKit's canonical tautomer, searched
            within a fixed number of transforms; `as-written` changes nothing.

    The rest is not a choice:

    | input | what happens |
    | --- | --- |
    | nothing, blanks, a word for a missing value (`nan`, `NA`, ...) | `empty` |
    | dummy atom (`*`, `[*:1]`, `[1*]`, `[#0]`) | `unsupported` |
    | placeholder that is no SMILES (`[R1]`, `[alkyl]`, `[Xx]`) | `invalid_smiles`, naming it |
    | reaction (`A>>B`) | `invalid_smiles` |
    | InChI, InChIKey | `invalid_smiles` with a hint; nothing is converted |
    | quotes around the SMILES | `invalid_smiles` with a hint |
    | CXSMILES extension (`... |...|`) | dropped: the SMILES before it counts |
    | any other text after a blank | `invalid_smiles`: where the SMILES ends is not guessed |
    | more than `MAX_ATOMS` heavy atoms or `MAX_RINGS` independent rings | `unsupported` |
    | more than `MAX_SMILES_LENGTH` characters | `unsupported` |
    | atom maps (`[CH3:1]`) | ignored |
    | isotopes (`[13C]`, `[2H]`) | ignored: set to natural, then hydrogens are removed |
    | explicit hydrogens | folded into their heavy atom; kept only where there is none to fold |
    |   | into (`[H][H]`, `[H+]`) or where H bridges two atoms |
    | double-bond stereo that only an H defines (`[H]/N=C/C`) | dropped with that H |
    """

    salts: Literal["whole", "parent"] = "whole"
    neutralize: bool = False
    stereo: Literal["keep", "drop"] = "keep"
    tautomers: Literal["as-written", "canonical"] = "as-written"
