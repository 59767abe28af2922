"""Tables in and out, their targets, and their splits into folds."""
