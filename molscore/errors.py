"""Errors a user can act on, and the exit code each one becomes.

A message says what happened, where (file, row, column), what was found, what was expected
and what to do. A molecule that cannot be read is not an error but a value
(`molscore.chem.ParseFailure`), so one bad row never stops a table.
"""

from typing import ClassVar, Final


class MolscoreError(Exception):
    """Base of every error molscore raises on purpose.

    `exit_code` is what the command line returns for it.
    """

    exit_code: ClassVar[int] = 1


class ConfigError(MolscoreError):
    """An option, or a combination of options, that cannot be used."""

    exit_code: ClassVar[int] = 2


class InputError(MolscoreError):
    """Input data that cannot be used: a file, a column or its values."""

    exit_code: ClassVar[int] = 3


class BundleError(MolscoreError):
    """A model bundle that is missing, damaged, too new or not to be trusted."""

    exit_code: ClassVar[int] = 4


class ExportError(MolscoreError):
    """A model that could not be written as ONNX, or whose ONNX form disagrees with it."""

    exit_code: ClassVar[int] = 4


EXIT_INTERRUPTED: Final = 130
EXIT_CLOSED_PIPE: Final = 141
