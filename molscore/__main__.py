"""`python -m molscore`: the console script by another way."""

from molscore.cli.main import run

if __name__ == "__main__":
    run()
