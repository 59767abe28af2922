"""Turn `cells.csv` into the tables and plots that are committed beside it.

    python benchmarks/esol/tables.py

Writes `tables/NAME.md` and `tables/NAME.csv` per table, `tables/convergence.md`, and two plots.
A row is shown when all folds of at least one seed are there; missing rows are named.
"""

import csv
import json
import platform
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import matplotlib.pyplot as plt
import numpy as np
from cells import CHEMPROP, FOLDS, GRAPH_BLOCKS, INDEPENDENT, TABLES, Table, label, plan_name
from numpy.typing import NDArray
from run import CURVES, HERE, LOOK_EVERY, RESULTS
from scipy import stats

from molscore.nn.config import ModelConfig

OUT: Final = HERE / "tables"
TRAIN_TIME: Final = HERE.parent / "train_time" / "results.json"
REACHED: Final = (0.80, 0.70, 0.65, 0.60)
"""RMSEs the convergence table asks for."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One architecture on one data set.

    Attributes:
        rmse: [n_seeds, n_folds]; ROC-AUC for a class.
        seconds: mean over the trainings.
        parameters: of one expert.
        is_auc: whether the scores are ROC-AUCs, of which more is better.
    """

    rmse: Floats
    seconds: float
    parameters: int
    is_auc: bool = False

    @property
    def mean(self) -> float:
        """Mean over seeds and folds."""
        return float(self.rmse.mean())

    @property
    def cost(self) -> float:
        """The mean, or one minus it where more is better."""
        return 1.0 - self.mean if self.is_auc else self.mean


def read_rows() -> dict[tuple[str, str], Row]:
    """Return all architectures with whole seeds, by (data set, label)."""
    found: dict[tuple[str, str], dict[int, dict[int, dict[str, str]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    with RESULTS.open(encoding="utf-8", newline="") as file:
        for r in csv.DictReader(file):
            found[r["dataset"], r["model"]][int(r["seed"])][int(r["fold"])] = r
    rows = {}
    for key, seeds in found.items():
        whole = [folds for _, folds in sorted(seeds.items()) if len(folds) == FOLDS]
        if not whole:
            continue
        cells = [[folds[f] for f in range(FOLDS)] for folds in whole]
        rows[key] = Row(
            rmse=np.array([[float(c["rmse"] or c["roc_auc"]) for c in line] for line in cells]),
            seconds=float(np.mean([float(c["seconds"]) for line in cells for c in line])),
            parameters=int(cells[0][0]["parameters"]),
            is_auc=not cells[0][0]["rmse"],
        )
    return rows


def paired(a: Row, b: Row) -> str:
    """Return the mean difference a - b over shared seeds and folds, with a 95 % interval.

    The pairs of one fold share its molecules, so the seeds of a fold are averaged first; the
    interval is that of a paired t-test over the folds.
    """
    n = min(len(a.rmse), len(b.rmse))
    difference = (a.rmse[:n] - b.rmse[:n]).mean(axis=0)
    low, high = stats.ttest_1samp(difference, 0.0).confidence_interval(0.95)
    return f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def lines_of(table: Table, rows: dict[tuple[str, str], Row]) -> list[list[str]]:
    """Return the cells of a table's lines, best first within what is there."""
    there = [name for name in table.rows if (table.dataset, name) in rows]
    there.sort(key=lambda name: rows[table.dataset, name].cost)
    lines = []
    for name in there:
        row = rows[table.dataset, name]
        lines.append(
            [
                name,
                f"{row.mean:.3f}",
                f"{row.rmse.mean(axis=0).std(ddof=1):.3f}",
                str(len(row.rmse)),
                " ".join(f"{v:.3f}" for v in row.rmse.mean(axis=0)),
                *(difference(rows, table.dataset, name, other) for other in table.against),
                f"{row.parameters:,}" if row.parameters else "",
                f"{row.seconds:.0f}",
                table.paper.get(name, ""),
            ]
        )
    return lines


def difference(rows: dict[tuple[str, str], Row], dataset: str, name: str, other: str) -> str:
    """Return how far a row is from another, where both are there and are not the same."""
    if other == "native":
        other = f"{name.split(' ', 1)[0]} native"
    if other == name or not {(dataset, name), (dataset, other)} <= rows.keys():
        return ""
    return paired(rows[dataset, name], rows[dataset, other])


def head_of(table: Table, *, is_auc: bool) -> list[str]:
    """Return the column names of a table."""
    return [
        *("model", "ROC-AUC" if is_auc else "RMSE", "sd of folds", "seeds", "per fold"),
        *(f"minus {other} [95 %]" for other in table.against),
        *("parameters", "CPU s a fold", "paper"),
    ]


def write_table(table: Table, rows: dict[tuple[str, str], Row]) -> None:
    """Write one table as Markdown and CSV."""
    lines = lines_of(table, rows)
    if len(lines) < min(2, len(table.models)):
        return
    missing = [name for name in table.rows if (table.dataset, name) not in rows]
    head = head_of(table, is_auc=rows[table.dataset, lines[0][0]].is_auc)
    text = [f"# {table.title}", "", markdown(head, lines), ""]
    text += [
        f"Paper: {name}: {value}"
        for name, value in table.paper.items()
        if name not in {line[0] for line in lines}
    ]
    if missing:
        text.append(f"Not trained yet: {', '.join(missing)}")
    (OUT / f"{table.name}.md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    with (OUT / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([head, *lines])


def write_independent(rows: dict[tuple[str, str], Row]) -> None:
    """Write the default beside its rivals on every other data set, one line each."""
    default = label(ModelConfig())
    columns = [default, "dmpnn skip05", "dmpnn native", "catboost", CHEMPROP]
    columns.append("dmpnn score descriptors=rdkit")
    head = ["data set", *columns, *(f"{default} minus {o} [95 %]" for o in ("catboost", CHEMPROP))]
    lines = []
    for name in INDEPENDENT:
        if (name, default) not in rows:
            continue
        scores = [f"{rows[name, c].mean:.3f}" if (name, c) in rows else "" for c in columns]
        auc = " (ROC-AUC)" if rows[name, default].is_auc else ""
        against = [difference(rows, name, default, other) for other in ("catboost", CHEMPROP)]
        lines.append([name + auc, *scores, *against])
    if lines:
        text = "# The default and its rivals on other data, RMSE, five folds\n\n"
        (OUT / "independent.md").write_text(text + markdown(head, lines) + "\n", encoding="utf-8")


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """Return a Markdown table."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])


def read_curves() -> dict[str, Floats]:
    """Return the held-out RMSE over epochs of ESOL models, mean of the folds of seed 0."""
    found: dict[str, list[Floats]] = defaultdict(list)
    with CURVES.open(encoding="utf-8", newline="") as file:
        for r in csv.DictReader(file):
            if r["dataset"] == "esol" and r["seed"] == "0":
                found[r["model"]].append(np.array(r["rmse"].split(), dtype=float))
    return {name: np.mean(folds, axis=0) for name, folds in found.items() if len(folds) == FOLDS}


def write_convergence(rows: dict[tuple[str, str], Row], curves: dict[str, Floats]) -> None:
    """Write how many epochs and seconds models take to stay at or below given RMSEs."""
    head = ["model", *(f"epochs (CPU s) to {r:.2f}" for r in REACHED)]
    lines = []
    for block in GRAPH_BLOCKS:
        for plan in ("native", "score"):
            name = f"{block} {plan}"
            if name in curves and ("esol", name) in rows:
                second = rows["esol", name].seconds / (LOOK_EVERY * len(curves[name]))
                lines.append([name, *(reached(curves[name], r, second) for r in REACHED)])
    if lines:
        text = (
            "# Convergence: epochs (and processor seconds a fold) until the folds' mean RMSE "
            f"reaches a value\n\nSeed 0, looked at every {LOOK_EVERY} epochs, under a schedule of "
            "fixed length.\n\n"
        )
        (OUT / "convergence.md").write_text(text + markdown(head, lines) + "\n", encoding="utf-8")


def reached(curve: Floats, wanted: float, seconds_an_epoch: float) -> str:
    """Return the first epoch at or below `wanted`."""
    at = np.flatnonzero(curve <= wanted)
    if not at.size:
        return "never"
    epoch = int(at[0] + 1) * LOOK_EVERY
    return f"{epoch} ({epoch * seconds_an_epoch:.1f})"


def plot_convergence(curves: dict[str, Floats]) -> None:
    """Draw the native stack and SCORE over epochs, one panel a family."""
    blocks = [b for b in GRAPH_BLOCKS if {f"{b} native", f"{b} score"} <= curves.keys()]
    if not blocks:
        return
    figure, axes = plt.subplots(2, 4, figsize=(13, 6), sharex=True, sharey=True)
    for axis, block in zip(axes.flat, blocks, strict=False):
        for plan in ("native", "score"):
            curve = curves[f"{block} {plan}"]
            epochs = LOOK_EVERY * np.arange(1, len(curve) + 1)
            axis.plot(epochs, curve, label=plan)
        axis.set(title=block, ylim=(0.5, 1.2))
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(blocks) :]:
        axis.set_axis_off()
    axes[0, 0].legend()
    figure.supxlabel("epoch")
    figure.supylabel("held-out RMSE, mean of five folds")
    figure.tight_layout()
    figure.savefig(OUT / "convergence.png", dpi=110)
    plt.close(figure)


def plot_depth(rows: dict[tuple[str, str], Row]) -> None:
    """Draw RMSE against the number of applications."""
    figure, axis = plt.subplots(figsize=(6, 4))
    for text, pattern in (("native", "{k}x1@1"), ("dt = 0.5", "1x{k}@0.5"), ("1/K", "1x{k}@1/K")):
        points = [
            (k, rows["esol", name])
            for k in range(2, 8)
            if ("esol", name := f"dmpnn {plan_name(pattern.format(k=k))}") in rows
        ]
        if len(points) > 1:
            axis.plot([k for k, _ in points], [r.mean for _, r in points], marker="o", label=text)
    if axis.lines:
        axis.set(xlabel="applications K", ylabel="RMSE, mean of five folds")
        axis.grid(alpha=0.3)
        axis.legend()
        figure.tight_layout()
        figure.savefig(OUT / "depth.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Write all that can be written."""
    OUT.mkdir(exist_ok=True)
    rows = read_rows()
    for table in TABLES:
        write_table(table, rows)
    write_independent(rows)
    curves = read_curves()
    write_convergence(rows, curves)
    plot_convergence(curves)
    plot_depth(rows)
    about = {
        "python": platform.python_version(),
        "machine": json.loads(TRAIN_TIME.read_text(encoding="utf-8")).get("machine", {}),
    }
    (OUT / "machine.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
