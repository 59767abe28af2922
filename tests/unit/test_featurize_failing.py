"""A featurisation that fails half way."""

import subprocess
import sys

CODE = """
import sys
import molscore.api
def progress(n):
    raise RuntimeError("the caller failed")
molscore.api.featurize_table(sys.argv[1], sys.argv[2], workers=2, progress=progress)
"""


def test_a_caller_that_fails_ends_the_processes_and_leaves_no_file(tmp_path):
    table = tmp_path / "t.smi"
    table.write_text("CCO\n" * 4000)
    output = tmp_path / "t.csv"
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(table), str(output)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert "the caller failed" in done.stderr
    assert not output.exists()
