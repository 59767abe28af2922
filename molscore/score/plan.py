"""Depth plans: one line of text that describes how blocks are stacked and repeated.

    PLAN   = NAME | STAGE{","STAGE}
    STAGE  = BLOCKS "x" STEPS ( "@" DT | "+" )
    DT     = number in (0, 1] | "1/K" | "learned"
    NAME   = "score" | "skip05" | "native" | "residual"

A stage has BLOCKS different blocks, each applied STEPS times in a row (`2x2` = A A B B) with
the contractive step DT; `+` is the additive residual h + F(h) instead. In `1/K`, K is the
number of applications in the whole plan.

Source: arXiv 2603.10544, section 3 (score, skip05, native stack, additive residual).
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from molscore.errors import ConfigError

DtRule = float | Literal["1/K", "learned"]

PLAN_NAMES: Final[dict[str, str]] = {
    "score": "1x4@0.5",
    "skip05": "4x1@0.5",
    "native": "4x1@1",
    "residual": "4x1+",
}
MAX_SCALE: Final = 10.0
"""Largest factor on a block where the steps of Euler are scaled, so that nothing overflows."""

MAX_APPLICATIONS: Final = 64
"""More than this is a typing error: cost grows with it and nothing is gained beyond ten."""

_STAGE = re.compile(r"(?P<blocks>\d+)x(?P<steps>\d+)(?:@(?P<dt>[^,+@]+)|(?P<add>\+))")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """BLOCKS different blocks, each applied `steps` times.

    Attributes:
        blocks: number of blocks with weights of their own, >= 1.
        steps: applications of each block, >= 1.
        dt: step size in (0, 1], or the rule that sets it. Not used by an additive stage.
        additive: h <- h + F(h) instead of the contractive step.
    """

    blocks: int
    steps: int
    dt: DtRule = 1.0
    additive: bool = False

    def __str__(self) -> str:
        tail = "+" if self.additive else f"@{_dt_text(self.dt)}"
        return f"{self.blocks}x{self.steps}{tail}"


@dataclass(frozen=True, kw_only=True)
class DepthPlan:
    """A list of stages, run one after the other. Build it with `DepthPlan.parse`."""

    stages: tuple[Stage, ...]

    @property
    def n_applications(self) -> int:
        """How often a block is applied in all: the K of `1/K`."""
        return sum(s.blocks * s.steps for s in self.stages)

    @property
    def n_blocks(self) -> int:
        """How many sets of block weights the plan has."""
        return sum(s.blocks for s in self.stages)

    def __str__(self) -> str:
        return ",".join(map(str, self.stages))

    @classmethod
    def parse(cls, text: str) -> "DepthPlan":
        """Read a plan from its name or its grammar (module docstring).

        Raises:
            ConfigError: when the text is not a plan; the message names the faulty stage.
        """
        spelled = PLAN_NAMES.get(text.strip().lower(), text)
        plan = cls(stages=tuple(_parse_stage(part, text) for part in spelled.split(",")))
        if plan.n_applications > MAX_APPLICATIONS:
            raise ConfigError(
                f"plan {text!r} applies blocks {plan.n_applications} times; "
                f"at most {MAX_APPLICATIONS} are allowed"
            )
        return plan


def _parse_stage(part: str, plan: str) -> Stage:
    match = _STAGE.fullmatch(part.replace(" ", ""))
    if match is None:
        raise ConfigError(
            f"plan {plan!r}: cannot read the stage {part.strip()!r}; expected one of "
            f"{', '.join(PLAN_NAMES)}, or BLOCKSxSTEPS@DT such as 1x4@0.5, 4x1@1/K, "
            "1x4@learned or 4x1+ (stages separated by commas)"
        )
    blocks, steps = int(match["blocks"]), int(match["steps"])
    if blocks < 1 or steps < 1:
        raise ConfigError(f"plan {plan!r}: BLOCKS and STEPS of {part.strip()!r} must be at least 1")
    if match["add"]:
        return Stage(blocks=blocks, steps=steps, additive=True)
    return Stage(blocks=blocks, steps=steps, dt=_parse_dt(match["dt"], plan))


def _parse_dt(text: str, plan: str) -> DtRule:
    if text.lower() == "1/k":
        return "1/K"
    if text.lower() == "learned":
        return "learned"
    try:
        dt = float(text)
    except ValueError:
        dt = float("nan")
    if not 0.0 < dt <= 1.0:
        raise ConfigError(
            f"plan {plan!r}: the step {text!r} must be a number above 0 and at most 1, "
            "1/K or learned"
        )
    return dt


def _dt_text(dt: DtRule) -> str:
    return f"{dt:g}" if isinstance(dt, float) else dt
