"""Everything RDKit: parsing, standardisation, graph features, packed graphs, descriptors."""
