import pytest
import torch

from molscore.nn.messages import BondBags, bag_message, message


def directed(bonds):
    """Both directions of each bond, as [source, target]."""
    pairs = [pair for a, b in bonds for pair in ((a, b), (b, a))]
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


GRAPHS = {
    "no bond": (3, []),
    "one bond": (2, [(0, 1)]),
    "star and ring": (9, [(0, 1), (0, 2), (0, 3), (4, 5), (5, 6), (6, 4), (6, 8)]),
    "two molecules, mixed order": (5, [(3, 4), (1, 0), (2, 1)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_bags_give_the_message_and_its_gradient(name):
    n_atoms, bonds = GRAPHS[name]
    source, target = directed(bonds)
    h = torch.randn(len(source), 4, dtype=torch.float64, requires_grad=True)
    bags = BondBags.of(source, target, n_atoms)
    ours = bag_message(h, bags)
    theirs = message(h, source, target, n_atoms)
    torch.testing.assert_close(ours, theirs)
    if bonds:
        torch.autograd.gradcheck(lambda x: bag_message(x, bags), (h,))
        weight = torch.randn_like(ours)
        (a,) = torch.autograd.grad(ours, h, weight)
        (b,) = torch.autograd.grad(theirs, h, weight)
        torch.testing.assert_close(a, b)


def test_a_message_is_the_sum_over_bonds_into_the_source_without_the_reverse():
    source, target = directed(GRAPHS["star and ring"][1])
    h = torch.randn(len(source), 4)
    ours = bag_message(h, BondBags.of(source, target, 9))
    for e in range(len(source)):
        into = [k for k in range(len(source)) if target[k] == source[e] and k != e ^ 1]
        torch.testing.assert_close(ours[e], h[into].sum(dim=0))
