import torch

from molscore.chem.features import ATOM_FEATURES
from molscore.nn.encoder import atom_encoder, bond_encoder


def test_equals_a_linear_layer_on_one_hot_codes():
    encoder = atom_encoder(8)
    codes = torch.stack([torch.randint(len(f), (20,)) for f in ATOM_FEATURES], dim=1)
    hot = [torch.nn.functional.one_hot(codes[:, i], len(f)) for i, f in enumerate(ATOM_FEATURES)]
    expected = torch.cat(hot, dim=1).float() @ encoder.weight
    torch.testing.assert_close(encoder(codes), expected)


def test_unseen_codes_add_nothing():
    encoder = bond_encoder(8)
    seen = torch.tensor([[0, 1, 2], [3, 0, 0]])
    encoder.forget_unseen(seen)
    assert (encoder(seen) != 0).any(dim=1).all()
    unseen = torch.tensor([[1, 2, 1]])
    assert torch.equal(encoder(unseen), torch.zeros(1, 8))


def test_a_code_outside_the_vocabulary_is_an_error_and_not_a_neighbours_row():
    encoder = bond_encoder(8)
    bad = torch.tensor([[10_000, 0, 0]])
    try:
        encoder(bad)
    except (IndexError, RuntimeError):
        return
    raise AssertionError("an index outside the table was accepted")


def test_no_rows_are_fine():
    assert bond_encoder(8)(torch.zeros(0, 3, dtype=torch.int64)).shape == (0, 8)
