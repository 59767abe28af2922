import subprocess
import sys

import pytest

from molscore.errors import ConfigError
from molscore.score.plan import PLAN_NAMES, DepthPlan, Stage


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("score", [Stage(blocks=1, steps=4, dt=0.5)]),
        ("skip05", [Stage(blocks=4, steps=1, dt=0.5)]),
        ("native", [Stage(blocks=4, steps=1, dt=1.0)]),
        ("residual", [Stage(blocks=4, steps=1, additive=True)]),
        ("1x4@1/K", [Stage(blocks=1, steps=4, dt="1/K")]),
        ("1x4@learned", [Stage(blocks=1, steps=4, dt="learned")]),
        ("2x2@0.25", [Stage(blocks=2, steps=2, dt=0.25)]),
        (
            "1x2@0.5, 1x2+",
            [Stage(blocks=1, steps=2, dt=0.5), Stage(blocks=1, steps=2, additive=True)],
        ),
        (" SCORE ", [Stage(blocks=1, steps=4, dt=0.5)]),
    ],
)
def test_reads_grammar_and_names(text, stages):
    assert list(DepthPlan.parse(text).stages) == stages


@pytest.mark.parametrize("text", [*PLAN_NAMES, "1x2@0.5,3x1@1/K,2x2+", "1x4@learned"])
def test_written_plan_reads_back(text):
    plan = DepthPlan.parse(text)
    assert DepthPlan.parse(str(plan)) == plan


def test_counts_applications_and_blocks():
    plan = DepthPlan.parse("2x2@0.5,1x3@1")
    assert plan.n_applications == 7
    assert plan.n_blocks == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1x4",
        "x4@0.5",
        "1x4@0",
        "1x4@1.5",
        "1x4@-1",
        "1x4@nan",
        "1x4@inf",
        "1x4@fast",
        "0x4@0.5",
        "1x0@0.5",
        "1x4@0.5,",
        "1x4@0.5+",
        "scores",
        "1x65@0.5",
        "1x4@0.5;1x4@0.5",
    ],
)
def test_refuses_what_is_no_plan(text):
    with pytest.raises(ConfigError, match="plan"):
        DepthPlan.parse(text)


def test_message_names_the_faulty_stage():
    with pytest.raises(ConfigError, match=r"cannot read the stage '4y1'"):
        DepthPlan.parse("1x2@0.5,4y1")


def test_plan_and_model_configuration_do_not_import_torch():
    code = (
        "import sys, molscore.score.plan, molscore.nn.config, molscore.train.config;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
