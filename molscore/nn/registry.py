"""Names of block families and where each one lives.

A family is one file; registering it here makes it available as `--block NAME` everywhere.
Entries are import paths, so that listing the names does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from molscore.errors import ConfigError

if TYPE_CHECKING:
    from molscore.nn.families.base import Family

_BLOCKS: Final[dict[str, str]] = {
    "dmpnn": "molscore.nn.families.dmpnn:DirectedMessagePassing",
    "attentivefp": "molscore.nn.families.attentivefp:AttentiveFP",
    "gcn": "molscore.nn.families.gcn:GraphConvolution",
    "gat": "molscore.nn.families.gat:GraphAttention",
    "gatv2": "molscore.nn.families.gatv2:GraphAttentionV2",
    "gine": "molscore.nn.families.gine:GraphIsomorphism",
    "mpnn": "molscore.nn.families.mpnn:MessagePassingNetwork",
    "transformer": "molscore.nn.families.transformer:GraphTransformer",
    "mlp": "molscore.nn.families.mlp:DescriptorNetwork",
}
_OF_DESCRIPTORS: Final[set[str]] = {"mlp"}


def block_names() -> tuple[str, ...]:
    """Return the names `--block` accepts."""
    return tuple(_BLOCKS)


def made_of_descriptors(name: str) -> bool:
    """Return whether a family reads a molecule's descriptors and not its graph.

    It is built with their number, its molecules have one row each, and the head does not get
    the descriptors again.
    """
    return name in _OF_DESCRIPTORS


def register_block(name: str, target: str, *, of_descriptors: bool = False) -> None:
    """Add a family.

    Args:
        name: what `--block` will call it.
        target: "module:Class" of a `Family`.
        of_descriptors: see `made_of_descriptors`.

    Raises:
        ConfigError: when the name is taken; a silent replacement would change what an
            existing bundle means.
    """
    if name in _BLOCKS:
        raise ConfigError(f"block {name!r} is already registered as {_BLOCKS[name]}")
    _BLOCKS[name] = target
    if of_descriptors:
        _OF_DESCRIPTORS.add(name)


def family_class(name: str) -> "type[Family]":
    """Return the family registered under `name`, importing it."""
    if name not in _BLOCKS:
        raise ConfigError(f"unknown block {name!r}; expected one of {', '.join(_BLOCKS)}")
    module, _, attribute = _BLOCKS[name].partition(":")
    family: type[Family] = getattr(import_module(module), attribute)
    return family
