"""Reports as plain text lines, for a terminal or a log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from molscore.bundle.trees import VALUES
from molscore.nn.config import TREES

_LABEL_WIDTH: Final = 16
_LONG_LIST: Final = 12
"""Lists longer than this are counted, not printed."""


def describe_model(about: Mapping[str, Any]) -> list[str]:
    """Return the lines `molscore inspect` prints.

    Args:
        about: the result of `molscore.api.describe`.
    """
    file, policy = about["file"], about["policy"]
    lines = [
        _pair("model", about["name"]),
        _pair("file", f"{file['path']} ({file['size']:,} bytes)"),
        _pair("sha256", file["sha256"]),
        _pair("created", f"{about['created']} by molscore {about['molscore_version']}"),
        _pair("features", f"version {about['featurizer_version']}, RDKit {about['rdkit_version']}"),
        _pair("experts", f"{about['n_experts']}, {about['n_parameters']:,} numbers each"),
        *_teacher(about["training"]),
        _pair("architecture", _architecture(about)),
        _pair("standardised", _settings(policy)),
        "targets",
    ]
    for target in about["targets"]:
        rest = {k: v for k, v in target.items() if k != "name" and v not in ("", None, [])}
        if target["classes"]:
            rest["prediction"] = f"probability of {target['classes'][1]}"
        lines.append(f"  {target['name']}: {_settings(rest)}")
    for section in ("trust", "training", "metrics"):
        if about[section]:
            lines.append(section)
            lines += [f"  {line}" for line in _tree(about[section])]
    if about["metrics"]:
        transforms = {target["name"]: target["transform"] for target in about["targets"]}
        lines += [f"  {line}" for line in learned_units(transforms)]
    lines.append("members")
    lines += [
        f"  {name}: {member['size']:,} bytes, sha256 {member['sha256']}"
        for name, member in about["members"].items()
    ]
    return lines


def metric_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return metrics as aligned columns.

    Args:
        rows: mappings whose keys become columns in the order they first appear; a value of None
            (undefined) is shown as `-`, a missing key as blank.
    """
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([_cell(row, key) for key in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    numeric = [all(isinstance(r.get(key), int | float | None) for r in rows) for key in columns]
    return [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    ]


def cross_validation(metrics: Mapping[str, Any]) -> list[str]:
    """Return the lines that close a training run.

    Args:
        metrics: the result of `molscore.train.assess.assess`; empty without folds.
    """
    lines = []
    for name, of_target in metrics.items():
        figures = ", ".join(
            _figure(metric, mean, of_target["sd"][metric], of_target["folds"])
            for metric, mean in of_target["mean"].items()
        )
        n_folds = len({single["fold"] for single in of_target["folds"]})
        lines.append(
            f"{name}: mean over {n_folds} held-out folds{_learned_as(of_target)}: {figures}"
        )
        if "averaged_mean" in of_target:
            averaged = of_target["averaged_mean"].items()
            figures = ", ".join(f"{metric} {format_number(value)}" for metric, value in averaged)
            lines.append(f"{name}: with the repeats of a fold averaged: {figures}")
        if "others" in of_target and of_target["others"]["pooled"]["n"] < of_target["pooled"]["n"]:
            lines.append(f"{name}: {_of_others(of_target['others'])}")
        if "against_teacher" in of_target:
            lines.append(f"{name}: {_beside_the_teacher(of_target)}")
        lines += [f"{name}: {text}" for text in _trust(of_target)]
        if "weight" in of_target:
            metric = next(iter(of_target["mean"]))
            alone = ", ".join(
                f"{called} alone {metric} {format_number(of_target[part]['mean'][metric])}"
                for part, called in (("graph", "network"), ("trees", "trees"))
            )
            weight = of_target["weight"]["graph"]
            lines.append(f"{name}: {alone}; weight of the network {weight:.2f}")
    return lines


def _trust(of_target: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a cross-validation shows of intervals, domain and probabilities."""
    interval, domain = of_target.get("interval"), of_target.get("domain")
    if interval is not None and interval["width"] is not None and interval["constant_width"]:
        narrower = 1 - interval["width"] / interval["constant_width"]
        than = f"{abs(narrower):.0%} {'narrower' if narrower > 0 else 'wider'} than"
        if f"{abs(narrower):.0%}" == "0%":
            than = "as wide as"
        yield f"{_interval_line(interval['level'], interval)}; {than} at one width for all"
    if interval is not None and interval["width"] is None:
        yield f"too few held-out values ({interval['n']}) for {interval['level']:.0%} intervals"
    if domain is not None and domain["rmse_outside"] is not None:
        yield (
            f"{domain['outside']:.0%} of the held-out rows are outside the domain: rmse "
            f"{format_number(domain['rmse_outside'])} there, "
            f"{format_number(domain['rmse_inside'])} inside"
        )
    if "calibration" in of_target:
        before, after = of_target["calibration"]["before"], of_target["calibration"]["after"]
        changes = (
            f"{name.replace('_', ' ')} {format_number(before[name])} -> {format_number(value)}"
            for name, value in after.items()
        )
        yield f"calibrated probabilities: {', '.join(changes)}"


def _interval_line(level: float, said: Mapping[str, Any]) -> str:
    parts = " / ".join(
        "-" if share is None else f"{share:.1%}" for share in said["coverage_by_difficulty"]
    )
    return (
        f"{level:.0%} intervals hold {said['coverage']:.1%} of the values (easiest to hardest "
        f"third {parts}), mean width {format_number(said['width'])}"
    )


def trust_lines(result: Any) -> list[str]:
    """Return what an evaluation shows of intervals, domain and probabilities.

    Args:
        result: a `molscore.api.evaluation.Evaluation`.
    """
    lines = []
    for name, parts in result.intervals.items():
        part = "unseen" if parts["unseen"]["n"] else "all"
        if parts[part]["n"] and parts[part]["coverage"] is not None:
            lines.append(f"{name}, {part}: {_interval_line(result.level, parts[part])}")
    for name, parts in result.domain.items():
        if not any(scores["n"] for scores in parts.values()):
            continue
        figures = [
            f"{place} the domain {format_number(scores['n'])} rows"
            + "".join(
                f", {metric} {format_number(value)}"
                for metric, value in list(scores.items())[:2]
                if value is not None
            )
            for place, scores in parts.items()
        ]
        lines.append(f"{name}, unseen: {'; '.join(figures)}")
    for name, table in result.reliability.items():
        if table:
            lines.append(f"{name}, unseen: probabilities and what became of them")
            lines += [f"  {line}" for line in metric_table(table)]
    return lines


def _figure(
    metric: str, mean: float | None, sd: float | None, folds: Sequence[Mapping[str, Any]]
) -> str:
    """Return such as "rmse 0.5 +- 0.1", with the folds in which it is undefined."""
    text = f"{metric} {format_number(mean)}"
    if sd is not None:
        text += f" +- {format_number(sd)}"
    n_undefined = sum(single[metric] is None for single in folds)
    if mean is not None and n_undefined:
        text += f" (undefined in {n_undefined} of {len(folds)} folds)"
    return text


def _of_others(others: Mapping[str, Any]) -> str:
    """Say how the rows fare that a model to start from was not trained on."""
    n = others["pooled"]["n"]
    if not n:
        return "the model to start from knows the structures of all rows: there is no clean figure"
    figures = ", ".join(f"{metric} {format_number(v)}" for metric, v in others["mean"].items())
    return f"on the {n} rows whose structures the model to start from never saw: {figures}"


def learned_units(targets: Mapping[str, Any]) -> list[str]:
    """Return a line for every target whose metrics are not in the unit of the table.

    Args:
        targets: name -> its transform.
    """
    return [
        f"{name}: metrics are in {transform} units, predictions in those of the table"
        for name, transform in targets.items()
        if transform != "none"
    ]


def format_number(value: float | int | None) -> str:
    """Return a metric as text: four significant digits, counts whole, `-` where undefined."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"


def _learned_as(target: Mapping[str, Any]) -> str:
    transform = target.get("transform", "none")
    return "" if transform == "none" else f", in {transform} units"


def _cell(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key, "")
    return value if isinstance(value, str) else format_number(value)


def _pair(label: str, value: str) -> str:
    return f"{label:<{_LABEL_WIDTH}}{value}"


def _teacher(training: Mapping[str, Any]) -> list[str]:
    """Return the line that says of a student what it learned from."""
    teacher = training.get("teacher")
    if not isinstance(teacher, Mapping):
        return []
    said = f"{teacher.get('experts')} experts of {teacher.get('name')}"
    return [_pair("student of", f"{said}, sha256 {teacher.get('sha256')}")]


def _beside_the_teacher(target: Mapping[str, Any]) -> str:
    """Return how well the experts do that students learned from, and how far those are off."""
    metric = next(iter(target["mean"]))
    teacher, distance = target["teacher"]["mean"][metric], target["against_teacher"]["mean"]["rmse"]
    of_what = " of the probability" if target["kind"] == "classification" else ""
    return (
        f"the experts it learned from have {metric} {format_number(teacher)}; student and expert "
        f"differ by rmse {format_number(distance)}{of_what}"
    )


def _architecture(about: Mapping[str, Any]) -> str:
    model: dict[str, Any] = dict(about["model"])
    blend = model.pop("blend", False)
    if not blend and model["block"] != TREES:
        return _settings(model)
    n_trees = about["tensors"][VALUES]["shape"][1] // len(about["targets"])
    trees = (
        f"boosted trees ({n_trees:,} a target) on {len(about['descriptor_names'])} RDKit "
        "descriptors"
    )
    return f"{_settings(model)}; blended with {trees}" if blend else f"block {TREES}: {trees}"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key.replace('_', ' ')} {format_number(v) if v is None or isinstance(v, float) else v}"
        for key, v in values.items()
    )


def _tree(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield free-form JSON as indented `key: value` lines."""
    for key, value in data.items():
        if isinstance(value, Mapping) and not any(
            isinstance(v, Mapping | list) for v in value.values()
        ):
            yield f"{key}: {_settings(value) or '-'}"
        elif isinstance(value, Mapping):
            yield f"{key}:"
            yield from (f"  {line}" for line in _tree(value))
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            yield f"{key}:"
            yield from (f"  {line}" for line in metric_table(value))
        elif isinstance(value, list) and len(value) > _LONG_LIST:
            yield f"{key}: {len(value)} values"
        elif isinstance(value, list):
            yield f"{key}: {', '.join(map(str, value)) or '-'}"
        else:
            yield f"{key}: {format_number(value) if isinstance(value, float) else value}"
