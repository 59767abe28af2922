"""Train a model on a table."""

import dataclasses
import logging
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from molscore.api.options import build_configs
from molscore.chem.policy import ChemPolicy
from molscore.cpus import worker_count
from molscore.data.outputs import refuse_inputs
from molscore.data.records import TableOptions
from molscore.data.targets import LabelledTable, Transform, read_labelled
from molscore.errors import ConfigError, InputError
from molscore.nn.config import ModelConfig
from molscore.train.config import TrainConfig, settings

if TYPE_CHECKING:
    import pandas as pd

    from molscore.train.job import TrainResult

LOGGER: Final = logging.getLogger(__name__)

Task = Literal["auto", "regression", "classification"]
_EXTRA_PACKAGES: Final = frozenset({"torch", "torch_geometric", "onnxscript", "sklearn"})


def train(
    table: "str | Path | pd.DataFrame",
    *,
    output: str | Path | None = None,
    run_dir: str | Path | None = None,
    target: str | Sequence[str] | None = None,
    task: Task = "auto",
    transform: Transform = "none",
    unit: str = "",
    note: str = "",
    folds_file: str | Path | None = None,
    workers: int = 0,
    device: str = "cpu",
    strict: bool = False,
    force: bool = False,
    resume: bool = False,
    start: str | Path | None = None,
    exclude: str | Path | Sequence[str | Path] = (),
    structures: bool = True,
    progress: Callable[[int, int | None], None] | None = None,
    **options: Any,
) -> "TrainResult":
    """Train experts on a table by cross-validation and write them as one bundle.

    Args:
        table: a file, "-" for stdin, or a DataFrame.
        output: the `.molscore` file to write; `NAME.molscore` in the working directory, after
            the table's name, when not given.
        run_dir: folder for out-of-fold predictions, metrics, configuration and checkpoints;
            `OUTPUT-run` beside the output when not given.
        target: column or columns to learn; found when not given.
        task: of the targets; `auto` takes columns of two classes as classification.
        transform: what a model learns of a regression value: none, log10, ln, log1p.
        unit: of the values, for people to read.
        note: endpoint note that predictions carry.
        folds_file: a table with the columns row, fold; replaces `split` and `folds`.
        workers: processes at a time; 0 takes the available CPUs.
        device: `cpu`, `cuda`, `mps` or `auto`.
        strict: fail when any row cannot be used, instead of leaving it out.
        force: replace an existing bundle and run.
        resume: go on with the run in `run_dir`.
        start: a `.molscore` file; the experts start from its networks, whose architecture and
            standardisation then hold, and the schedule is a gentler one where the options
            do not say otherwise (`molscore.train.config.settings`). See `freeze` among the
            options.
        exclude: a table or tables whose structures are not learned from.
        structures: whether the model file may carry the structures of the table, for
            `--neighbours`, the domain and narrower intervals; else it has hashes of them alone.
        progress: told (epochs done, epochs in all).
        **options: fields of `TableOptions`, `ChemPolicy`, `ModelConfig` and `TrainConfig`, such
            as `smiles_column`, `salts`, `plan`, `width`, `blend`, `epochs`, `folds`, `seed`.
            Where every target is a class, fewer `epochs` are the default.

    Returns:
        Where the model is, its cross-validation metrics, and what was left out.

    Raises:
        ConfigError: on options that cannot be used, or files in the way.
        InputError: when the table does not allow training.
        MolscoreError: when a training process fails.
    """
    how, policy, model, schedule = build_configs(
        options, TableOptions, ChemPolicy, ModelConfig, TrainConfig
    )
    return train_model(
        table,
        output=Path(output) if output is not None else default_output(table),
        run_dir=None if run_dir is None else Path(run_dir),
        targets=[target] if isinstance(target, str) else target,
        task=task,
        transform=transform,
        unit=unit,
        note=note,
        folds_file=folds_file,
        table_options=how,
        policy=policy,
        model=model,
        schedule=schedule,
        given=options,
        workers=workers,
        device=device,
        strict=strict,
        force=force,
        resume=resume,
        start=start,
        exclude=[exclude] if isinstance(exclude, str | Path) else exclude,
        structures=structures,
        progress=progress,
    )


def train_model(
    table: "str | Path | pd.DataFrame",
    *,
    output: Path,
    run_dir: Path | None,
    targets: Sequence[str] | None,
    task: Task,
    transform: str,
    unit: str,
    note: str,
    folds_file: str | Path | None,
    table_options: TableOptions,
    policy: ChemPolicy,
    model: ModelConfig,
    schedule: TrainConfig,
    given: Container[str],
    workers: int,
    device: str,
    strict: bool,
    force: bool,
    resume: bool,
    start: str | Path | None,
    exclude: Sequence[str | Path],
    structures: bool,
    progress: Callable[[int, int | None], None] | None,
) -> "TrainResult":
    """Train with configurations that are built already; see `train`.

    `given` holds the names of the options that the user set: of `schedule`, others may change.
    """
    for name, value, known in (
        ("task", task, get_args(Task)),
        ("transform", transform, get_args(Transform)),
    ):
        if value not in known:
            raise ConfigError(f"unknown {name} {value!r}; expected one of {', '.join(known)}")
    worker_count(workers)
    refuse_inputs(
        output,
        table=table,
        folds_file=folds_file,
        model_to_start_from=start,
        table_to_exclude=list(exclude),
    )
    with training_extra():
        from molscore.data.splits import read_folds_file  # noqa: PLC0415 (may need the extra)
        from molscore.train.folder import RunFolder  # noqa: PLC0415
        from molscore.train.listing import read_listing  # noqa: PLC0415
        from molscore.train.places import check_places  # noqa: PLC0415
        from molscore.train.run import run_training  # noqa: PLC0415
        from molscore.train.start import read_start  # noqa: PLC0415

        run_dir = run_dir or default_run_dir(output)
        check_places(output, RunFolder(run_dir), force=force, resume=resume)
        origin = None if start is None else read_start(start)
        excluded = [read_listing(path) for path in exclude]
        labelled = read_labelled(
            table,
            table_options,
            targets=targets,
            kind=task,
            transform=transform,  # type: ignore[arg-type] # checked above
            unit=unit,
            note=note,
        )
        if strict:
            if origin is not None:  # rows are read under its standardisation, whatever is given
                model, policy = origin.settle(model, policy)
            refuse_unusable_rows(labelled, policy)
        classes = all(target.kind == "classification" for target in labelled.targets)
        other = settings(starts=origin is not None, classes=classes and "graph" in model.kinds)
        schedule = dataclasses.replace(
            schedule, **{name: value for name, value in other.items() if name not in given}
        )
        return run_training(
            labelled,
            policy=policy,
            model=model,
            train=schedule,
            output=output,
            run_dir=run_dir,
            folds=read_folds_file(folds_file, len(labelled)) if folds_file else None,
            workers=workers,
            device=device,
            force=force,
            resume=resume,
            start=origin,
            exclude=excluded,
            structures=structures,
            log=log_line,
            progress=progress,
        )


def default_output(table: "str | Path | pd.DataFrame") -> Path:
    """Return where the model of a table goes: `NAME.molscore` in the working directory.

    Raises:
        ConfigError: when the table has no name: stdin or a data frame.
    """
    if not isinstance(table, str | Path) or str(table) == "-":
        raise ConfigError("a table without a file name needs --output NAME.molscore")
    name = Path(table).name.removesuffix(".gz")
    return Path(f"{Path(name).stem or name}.molscore")


def default_run_dir(output: Path) -> Path:
    """Return where a run is kept when no folder is given: `NAME-run` beside the bundle.

    Raises:
        ConfigError: when the bundle has no name: a folder.
    """
    if not output.name or output.name == "..":
        raise ConfigError(f"{output} is a folder; give --output the name of a file")
    return output.with_name(f"{output.stem}-run")


def log_line(text: str) -> None:
    """Pass on what a run says; warnings and rows left out are heard under `--quiet` too."""
    if text.startswith("warning: "):
        LOGGER.warning("%s", text.removeprefix("warning: "))
    elif text.startswith("left out: "):
        LOGGER.warning("%s", text)
    else:
        LOGGER.info("%s", text)


def refuse_unusable_rows(table: LabelledTable, policy: ChemPolicy) -> None:
    """Raise for the first row or value that training would leave out.

    Raises:
        InputError: naming line, text and reason, and how many there are.
    """
    from molscore.chem.parse import ParseFailure, parse_smiles  # noqa: PLC0415 (imports RDKit)

    problems = [(r.line, r.text, r.reason) for r in table.rejected]
    malformed = table.malformed  # among the rejected already
    for row, (line, smiles) in enumerate(zip(table.lines, table.smiles, strict=True)):
        parsed = parse_smiles(smiles, policy)
        if isinstance(parsed, ParseFailure) and row not in malformed:
            problems.append((line, smiles, parsed.reason))
    if problems:
        line, text, reason = min(problems)
        raise InputError(
            f"{table.name}: {len(problems)} rows or values cannot be used and --strict is set; "
            f"the first is in line {line}: {text}: {reason}"
        )


@contextmanager
def training_extra() -> Iterator[None]:
    """Turn the absence of torch and its like into a message that says what to install.

    Raises:
        ConfigError: when a package of the training extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA_PACKAGES:
            raise
        raise ConfigError(
            f"this needs {package}, which is not installed: pip install 'molscore[train]'"
        ) from None
