"""Reports: what a run or a model looks like to a reader."""
