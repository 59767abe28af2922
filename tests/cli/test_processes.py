"""Pipes, signals, closed streams, containers: molscore as a process among others."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from commandline import MOLSCORE, run_process, wait_for

LONG_SMILES = "C" * 90 + "c1ccccc1" + "C" * 90


def write_rows(path: Path, n: int) -> Path:
    tails = ["O", "N", "C(=O)O", "c1ccccc1", "Cl", "[N+](=O)[O-]", "bad!"]
    path.write_text("".join(f"{'C' * (i % 9 + 1)}{tails[i % 7]}\n" for i in range(n)))
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200,000 rows, enough for signals to arrive in the middle."""
    return write_rows(tmp_path_factory.mktemp("many") / "many.smi", 200_000)


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """5,000 rows, enough for worker processes to be started."""
    return write_rows(tmp_path_factory.mktemp("some") / "some.smi", 5_000)


def children_of(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found


def read_terminal(start, arguments: list[str | Path], env: dict[str, str]) -> tuple[bytes, int]:
    """Run molscore with stdin, stdout and stderr on a terminal; return what it shows."""
    master, slave = pty.openpty()
    process = start(*arguments, stdin=slave, stdout=slave, stderr=slave, env=os.environ | env)
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 60)[0]:
        try:
            block = os.read(master, 65536)
        except OSError:  # Linux says EIO where others say end of file
            break
        if not block:
            break
        shown += block
    os.close(master)
    return shown.replace(b"\r\n", b"\n"), process.wait()


class TestPipes:
    def test_a_reader_that_leaves_ends_it_silently(self, model, many) -> None:
        script = (
            f"'{MOLSCORE}' predict '{many}' --model '{model}' | head -1; echo ${{PIPESTATUS[0]}}"
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.stdout == "smiles,pred_y,pred_y_sd,status,error\n141\n"
        assert done.stderr == ""

    def test_a_reader_that_leaves_help(self) -> None:
        script = f"'{MOLSCORE}' train --help | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.stdout in {"141\n", "0\n"}  # 0 when all was written before `true` ended
        assert done.stderr == ""

    def test_rows_come_while_the_input_is_still_open(self, start, model) -> None:
        """A long source is answered chunk by chunk; the reader does not wait for its end."""
        process = start("predict", "-", "--model", model, stdin=subprocess.PIPE)
        assert process.stdin and process.stdout

        def feed(stdin=process.stdin) -> None:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(b"smiles\n" + b"CCO\n" * 100_000)
                stdin.flush()

        feeder = threading.Thread(target=feed)
        feeder.start()
        assert process.stdout.readline().startswith(b"smiles,")
        assert process.stdout.readline().startswith(b"CCO,")
        assert not process.stdin.closed
        process.stdout.close()
        feeder.join(60)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        assert process.wait(60) == 141

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_full_disk_is_told_in_one_line(self, start, model, many) -> None:
        with Path("/dev/full").open("wb") as full:
            process = start("predict", many, "--model", model, stdout=full)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert len(err.splitlines()) == 1
        assert b"No space left" in err

    def test_closed_stdout_is_refused(self, model, many) -> None:
        script = f"'{MOLSCORE}' predict '{many}' --model '{model}' >&-"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("error: stdout is closed")

    def test_closed_stderr_does_not_mix_logs_into_data(self, model, tmp_path: Path) -> None:
        (tmp_path / "in.smi").write_text("CCO\nbad!\n")
        script = f"'{MOLSCORE}' predict in.smi --model '{model}' --output o.csv 2>&-; cat o.csv"
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert len(done.stdout.splitlines()) == 3
        assert "read," not in done.stdout


class TestTerminal:
    def test_same_rows_as_in_a_pipe_whatever_the_width(self, start, model, tmp_path: Path) -> None:
        table = tmp_path / "long.smi"
        table.write_text(f"{LONG_SMILES}\nc1cc[nH]c1\n")
        arguments = ["predict", table, "--model", model]
        piped = run_process(*arguments, env={"COLUMNS": "20"})
        assert len(piped.out.splitlines()) == 3
        shown, code = read_terminal(start, arguments, {"COLUMNS": "20", "TERM": "xterm"})
        assert shown.decode() == piped.out + piped.err
        assert code == piped.code == 0

    def test_bar_on_a_terminal_only_and_lines_stay_whole(
        self, start, model, tmp_path: Path
    ) -> None:
        table = tmp_path / "in.smi"
        table.write_text("C[/x]\n" * 3)
        out = tmp_path / "out.csv"
        arguments = ["predict", table, "--model", model, "--output", out, "--force"]
        shown, code = read_terminal(
            start, arguments, {"COLUMNS": "30", "TERM": "xterm", "NO_COLOR": "1"}
        )
        assert code == 0
        assert b"predicting" in shown
        assert b"line 2: C[/x]: invalid_smiles: " in shown
        assert b"\x1b[3" not in shown  # no colour
        assert "predicting" not in run_process(*arguments).err

    @pytest.mark.parametrize("color", [True, False])
    def test_rate_and_time_left(self, start, model, some, tmp_path: Path, color: bool) -> None:
        arguments = ["predict", some, "--model", model, "--output", tmp_path / "o.csv"]
        env = {"COLUMNS": "120", "TERM": "xterm"} | ({} if color else {"NO_COLOR": "1"})
        shown, code = read_terminal(start, arguments, env)
        assert code == 0
        assert b" rows/s" in shown
        assert b"/5000" in shown
        assert (b"\x1b[3" in shown) == color

    def test_waiting_for_a_terminal_says_so(self, start, model) -> None:
        master, slave = pty.openpty()
        process = start("predict", "-", "--model", model, stdin=slave)
        os.write(master, b"CCO\n\x04\x04")
        out, err = process.communicate(timeout=60)
        os.close(master)
        os.close(slave)
        assert err.splitlines()[0].startswith(b"reading SMILES from the terminal")
        assert out.splitlines()[1].startswith(b"CCO,")


class TestSignals:
    @pytest.mark.parametrize(
        ("signum", "code", "err"),
        [
            (signal.SIGINT, 130, "interrupted"),
            (signal.SIGTERM, -signal.SIGTERM, ""),
            (signal.SIGHUP, -signal.SIGHUP, ""),
        ],
    )
    @pytest.mark.parametrize("workers", ["1", "2"])
    def test_ends_at_once_and_leaves_what_can_be_gone_on_with(
        self, start, model, many, tmp_path: Path, signum, code, err, workers
    ) -> None:
        out = tmp_path / "out.csv"
        process = start("predict", many, "--model", model, "--output", out, "--workers", workers)
        wait_for((tmp_path / "out.csv.partial.json").exists)
        wait_for(lambda: (tmp_path / "out.csv.partial").stat().st_size > 2000)
        if workers == "2":
            wait_for(lambda: process.poll() is not None or children_of(process.pid))
        process.send_signal(signum)
        began = time.monotonic()
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout) == (code, b"")
        assert time.monotonic() - began < 10
        hint, *more = stderr.decode().splitlines()
        assert hint.endswith(" rows; the same command with --resume goes on")
        assert more == [err][: bool(err)]
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "out.csv.partial",
            "out.csv.partial.json",
        ]

    def test_ctrl_c_reaches_the_whole_group(self, start, model, many, tmp_path: Path) -> None:
        process = start(
            *("predict", many, "--model", model, "--output", tmp_path / "o.csv", "--workers", "2"),
            start_new_session=True,
        )
        wait_for(lambda: process.poll() is not None or children_of(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err.splitlines()[-1]) == (130, b"interrupted")
        assert len(err.splitlines()) == 2

    def test_nohup_is_respected(self, start, model, some, tmp_path: Path) -> None:
        process = start(
            *("predict", some, "--model", model, "--output", tmp_path / "o.csv"),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        wait_for(lambda: any(p.stat().st_size > 2000 for p in tmp_path.iterdir()))
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=120)
        assert process.returncode == 0


class TestWorkers:
    def test_output_does_not_depend_on_them(self, model, some) -> None:
        one = run_process("predict", some, "--model", model, "--workers", "1")
        assert one.code == 0
        assert len(one.out.splitlines()) == 5_001
        other = run_process("predict", some, "--model", model, "--workers", "4")
        assert other == one

    @pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
    def test_a_dead_worker_fails_the_run(self, start, model, many, tmp_path: Path) -> None:
        process = start(
            *("predict", many, "--model", model, "--output", tmp_path / "o.csv", "--workers", "2")
        )
        wait_for(lambda: process.poll() is not None or children_of(process.pid))
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        began = time.monotonic()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert time.monotonic() - began < 10
        hint, error = err.decode().splitlines()
        assert hint.endswith(" rows; the same command with --resume goes on")
        assert error.startswith("error: a worker process")
        assert not (tmp_path / "o.csv").exists()


class TestContainers:
    def test_no_home_no_tmp_read_only_cwd_unknown_uid(self, model, tmp_path: Path) -> None:
        nobody: dict[str, Any] = {"user": 12345, "group": 12345, "extra_groups": []}
        try:
            subprocess.run([MOLSCORE, "--version"], capture_output=True, check=True, **nobody)
        except (PermissionError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no other user can run this molscore here: {error}")
        for folder in (tmp_path, *tmp_path.parents[:2], model.parent, model.parent.parent):
            folder.chmod(0o755)
        model.chmod(0o644)
        out = tmp_path / "mounted"
        out.mkdir()
        os.chown(out, 12345, 12345)
        done = subprocess.run(
            [MOLSCORE, "predict", "-", "--model", model, "--output", out / "o.csv"],
            input=b"CCO\n",
            capture_output=True,
            check=False,
            cwd="/proc",
            env={"PATH": os.environ["PATH"], "TMPDIR": "/missing"},
            **nobody,
        )
        assert (done.returncode, done.stdout) == (0, b"")
        assert done.stderr == b"1 read, 1 predicted, 0 skipped\n"
        assert [p.name for p in out.iterdir()] == ["o.csv"]

    def test_an_environment_without_anything(self, model) -> None:
        done = subprocess.run(
            [MOLSCORE, "predict", "-", "--model", model],
            input=b"CCO\n",
            capture_output=True,
            check=False,
            cwd="/proc" if Path("/proc").is_dir() else "/",
            env={"TMPDIR": "/missing"},
        )
        assert done.stderr == b"1 read, 1 predicted, 0 skipped\n"
        assert done.returncode == 0

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
    def test_one_cpu_of_many(self, model) -> None:
        done = subprocess.run(
            [MOLSCORE, "predict", "-", "--model", model],
            input=b"CCO\nC\n",
            capture_output=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
        )
        assert done.stderr == b"2 read, 2 predicted, 0 skipped\n"
        assert len(done.stdout.splitlines()) == 3

    def test_locale_does_not_matter(self, model) -> None:
        text = "smiles,name\nCCO,\u00e9thanol \u2713\nc\u00e9,x\n".encode()
        usual = run_process("predict", "-", "--model", model, stdin=text)
        plain = run_process(
            *("predict", "-", "--model", model),
            stdin=text,
            env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        )
        assert plain == usual
        assert "\u00e9thanol \u2713" in plain.out
        assert "c\u00e9" in plain.err


class TestStartUp:
    def imported(self, *arguments: str | Path, stdin: str = "") -> set[str]:
        script = (
            "import sys; from molscore.cli.main import main\n"
            "code = main(sys.argv[1:])\n"
            "print('\\n'.join(sys.modules), file=sys.stderr); sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        return {line.partition(".")[0] for line in done.stderr.splitlines()}

    def test_help_imports_nothing_heavy(self) -> None:
        heavy = {"torch", "pandas", "rdkit", "numpy", "pyarrow", "onnx", "onnxruntime", "rich"}
        assert not heavy & self.imported("--help")
        assert not heavy & self.imported("train", "--help")

    def test_predict_imports_neither_torch_nor_pandas(self, model) -> None:
        loaded = self.imported("predict", "-", "--model", model, stdin="CCO\n")
        assert not {"torch", "torch_geometric", "pandas", "sklearn", "onnxscript"} & loaded
        assert {"rdkit", "onnxruntime"} <= loaded  # or the test looks at the wrong process

    def best_of(self, n: int, *arguments: str | Path, stdin: bytes = b"") -> float:
        times = []
        for _ in range(n):
            began = time.monotonic()
            assert run_process(*arguments, stdin=stdin).code == 0
            times.append(time.monotonic() - began)
        return min(times)

    def test_time_of_help(self) -> None:
        assert self.best_of(5, "--help") < 0.4

    def test_time_of_one_prediction(self, model) -> None:
        assert self.best_of(3, "predict", "-", "--model", model, stdin=b"CCO\n") < 1.5
