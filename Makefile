# Names for scripts/dev.py, which works without make as well.
# PYTHON: the Python 3.11 to 3.13 to build .venv with. ARGS: more arguments for pytest.
PYTHON ?= python3

.PHONY: setup demo test

setup demo:
	@$(PYTHON) scripts/dev.py $@

test:
	@$(PYTHON) scripts/dev.py test $(ARGS)
