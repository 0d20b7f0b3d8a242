"""``flopwatch breakeven`` and ``flopwatch plan`` as people and scripts use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from flopwatch.cli import main

ONE = """
[costs]
currency = "USD"

[costs.own]
gpus = 128
capex_per_gpu = 40000
life_years = 4
residual_ratio = 0.10
cost_of_capital = 0
colo_kw_per_gpu = 1.3
colo_per_kw_month = 150
staff_fte = 2
staff_cost_per_fte = 200000
maintenance_ratio = 0.04
electricity_per_kwh = 0.10
pue = 1.3
idle_kw_per_gpu = 0.30
busy_kw_per_gpu = 1.10

[costs.cloud]
price_per_gpu_hour = 3.00
price_date = 2026-11-01
"""
TWO = """
[costs.own]
gpus = 256
capex_per_gpu = 45000
life_years = 5
residual_ratio = 0.15
cost_of_capital = 0.10
colo_kw_per_gpu = 1.3
colo_per_kw_month = 180
staff_fte = 4
staff_cost_per_fte = 180000
maintenance_ratio = 0.05
other_per_gpu_year = 600
electricity_per_kwh = 0.12
pue = 1.35
idle_kw_per_gpu = 0.35
busy_kw_per_gpu = 1.15
[costs.cloud]
price_per_gpu_hour = 2.80
uplift_ratio = 0.15
billed_per_used = 1.10
[costs.efficiency]
own_mfu = 0.32
own_goodput = 0.90
own_peak_tflops = 989.4
cloud_mfu = 0.40
cloud_goodput = 0.95
cloud_peak_tflops = 989.4
"""
MIXED = """
[costs.cloud]
price_per_gpu_hour = 4.0
[[costs.group]]
name = "dear"
kind = "leased"
gpus = 100
fixed_per_gpu_hour = 3.0
[[costs.group]]
name = "cheap"
kind = "reserved"
gpus = 300
fixed_per_gpu_hour = 1.0
[costs.group.cloud]
price_per_gpu_hour = 2.0
[[costs.group]]
name = "burst"
kind = "on_demand"
gpus = 8
price_per_gpu_hour = 3.5
"""


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a command with a cost file; (exit status, what it printed, what it complained of)."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def run(command: str, text: str | None, *options: str) -> tuple[int, str, str]:
        argv = [command, *options]
        if text is not None:
            file = tmp_path / "costs.toml"
            file.write_text(text)
            argv += ["--costs", str(file)]
        try:
            status = main(argv)
        except SystemExit as stop:
            status = int(stop.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run


def found(ask: Any, text: str, *options: str) -> dict[str, Any]:
    status, out, _ = ask("breakeven", text, "--json", *options)
    assert status == 0
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_the_first_example(ask: Any) -> None:
    answer = found(ask, ONE, "--utilisation", "0.7")

    assert round(answer["fixed_per_gpu_hour"], 6) == 1.872904
    assert round(answer["variable_per_gpu_hour"], 6) == 0.104
    assert (answer["efficiency_ratio"], answer["efficiency"]["basis"]) == (1.0, "none")
    assert round(answer["u_star"], 5) == 0.64672
    assert (answer["verdict"], answer["currency"]) == ("own", "USD")
    assert round(answer["own_per_gpu_hour"], 6) == 1.945704
    assert round(answer["cloud_per_gpu_hour"], 6) == 2.1
    assert (answer["own_per_useful_eflop"], answer["cloud_per_useful_eflop"]) == (None, None)
    assert (answer["buy_or_renew"]["action"], answer["keep_or_retire"]["action"]) == ("buy", "keep")
    assert answer["sensitivity"][0]["parameter"] == "cloud_price_per_gpu_hour"
    assert answer["terms"]["capital"]["per_gpu_year"] == 9_000


def test_the_second_example_with_the_verdict_at_equal_efficiency_beside_it(ask: Any) -> None:
    answer = found(ask, TWO, "--utilisation", "75%")

    assert round(answer["capital_recovery_factor"], 6) == 0.263797
    assert round(answer["efficiency_ratio"], 6) == 0.757895
    assert round(answer["u_star"], 5) == 0.88168
    assert (answer["verdict"], answer["verdict_at_equal_efficiency"]) == ("rent", "own")
    assert (round(answer["own_per_useful_eflop"], 4), round(answer["cloud_per_useful_eflop"], 4)) == (
        3.0542,
        2.6169,
    )


@pytest.mark.parametrize("used", ["0.64672", "0.6468"])
def test_the_verdict_turns_at_the_line(ask: Any, used: str) -> None:
    assert found(ask, ONE, "--utilisation", used)["verdict"] == ("own" if float(used) >= 0.646721 else "rent")


def test_never_is_null_and_rent(ask: Any) -> None:
    answer = found(ask, ONE.replace("3.00", "1.70"), "--utilisation", "1")

    assert (answer["u_star"], answer["verdict"], round(answer["threshold"], 4)) == (None, "rent", 1.1735)


def test_without_a_utilisation_and_a_collector_there_is_no_verdict(ask: Any) -> None:
    answer = found(ask, ONE)

    assert (answer["verdict"], answer["own_per_gpu_hour"]) == ("insufficient_data", None)
    assert round(answer["u_star"], 5) == 0.64672


def test_every_group_has_its_line_and_the_fleet_s_is_weighted_by_cost(ask: Any) -> None:
    answer = found(ask, MIXED, "--utilisation", "0.7")

    lines = {group["name"]: (group["u_star"], group["verdict"]) for group in answer["groups"]}
    assert lines == {"dear": (0.75, "rent"), "cheap": (0.5, "own"), "burst": (None, "insufficient_data")}
    assert (answer["u_star"], answer["verdict"]) == (pytest.approx(0.625), "own")


def test_the_table_has_the_asked_capex_and_prices(ask: Any) -> None:
    table = found(ask, ONE, "--capex", "30000,50000", "--prices", "1.70,3")["table"]

    assert (table["rows"], table["prices"]) == ([30_000, 50_000], [1.7, 3.0])
    assert [[None if x is None else round(x, 3) for x in row] for row in table["u_star"]] == [
        [0.984, 0.542],
        [None, 0.751],
    ]


def test_people_see_the_arithmetic(ask: Any) -> None:
    status, out, _ = ask("breakeven", TWO, "--utilisation", "0.75")

    assert status == 0
    for text in (
        "2.252562 / (0.7579 x 1.1 x 3.2200 - 0.129600) = 0.881676 = 88.2%",
        "at equal efficiency (rho = 1): 66.0%",
        "own 3.0542, cloud 2.6169",
        "buy or renew       RENT",
        "keep or retire     KEEP",
        "note: the cloud's price has no date",
    ):
        assert text in out


def test_people_see_a_line_that_is_always_passed_and_a_group_that_has_none(ask: Any) -> None:
    contract = "commitment_ratio = 1.0\ncommitment_price_per_gpu_hour = 2.10\n"

    _, always, _ = ask("breakeven", ONE + contract, "--utilisation", "0.1")
    _, mixed, _ = ask("breakeven", MIXED, "--utilisation", "0.7")

    assert "U*                 0: owning is cheaper at every utilisation" in always
    assert "verdict            none, there is no line (at 70.0% used)" in mixed
    assert "U* 62.5%, weighted by what the groups cost" in mixed


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        pytest.param("", (), "allowed: a file with a table [costs.own]", id="empty"),
        pytest.param("[costs]\n", (), "setting costs.own is None", id="no-own"),
        pytest.param(
            ONE.split("[costs.cloud]", maxsplit=1)[0], (), "setting costs.cloud is None", id="no-cloud"
        ),
        pytest.param(
            ONE + "uplift = 1\n", (), "setting costs.cloud.uplift is 1; allowed: one of", id="unknown"
        ),
        pytest.param("[costs\n", (), "setting --costs is", id="toml"),
        pytest.param(
            ONE, ("--utilisation", "70"), "'70'; allowed: a ratio from 0 to 1, or a percentage", id="70"
        ),
        pytest.param(ONE, ("--utilisation", "1.01"), "'1.01'; allowed: a ratio from 0 to 1", id="over"),
        pytest.param(ONE, ("--prices", "3,x"), "'3,x'; allowed: numbers above 0", id="prices"),
    ],
)
def test_wrong_input_is_refused_with_status_2(
    ask: Any, text: str, options: tuple[str, ...], message: str
) -> None:
    status, out, err = ask("breakeven", text, *options)

    assert (status, out) == (2, "")
    assert message in err


def test_a_file_that_is_not_there_is_named(ask: Any, tmp_path: Path) -> None:
    status, _, err = ask("breakeven", None, "--costs", str(tmp_path / "none.toml"))

    assert status == 2
    assert "none.toml" in err


def test_other_tables_of_the_file_are_none_of_its_business(ask: Any) -> None:
    assert found(ask, ONE + "[collector]\nport = 'none'\n")["u_star"] == pytest.approx(0.646721, abs=1e-6)


def test_a_plan_with_spares_and_money(ask: Any) -> None:
    options = ("--params", "70B", "--tokens", "2T", "--gpu", "H100 SXM", "--days", "30", "--mfu", "40%")

    status, out, _ = ask("plan", ONE, *options, "--goodput", "0.9", "--spares", "5%", "--json")

    plan = json.loads(out)
    assert (status, plan["flops"]) == (0, pytest.approx(8.4e23))
    assert round(plan["gpus_exact"], 2) == 909.85
    assert (plan["gpus"], plan["gpus_in_nodes"], plan["gpus_with_spares"]) == (910, 912, 960)
    assert plan["cloud_cost"] == pytest.approx(3.0 * plan["working_gpu_hours"])


def test_a_plan_with_what_the_fleet_measured_beside_it(ask: Any) -> None:
    options = (
        "--flops",
        "8.4e23",
        "--gpu",
        "NVIDIA H100 80GB HBM3",
        "--days",
        "30",
        "--mfu",
        "0.4",
        "--goodput",
        "0.9",
    )

    _, out, _ = ask("plan", None, *options, "--measured-mfu", "0.2", "--measured-goodput", "0.9", "--json")

    plan = json.loads(out)
    assert plan["measured"]["gpus_exact"] == pytest.approx(2 * plan["gpus_exact"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--params", "70B"), "--tokens is needed"),
        (("--flops", "1e20", "--tokens", "2T"), "--tokens is for --params and --model"),
        (("--model", "llama-3-70b", "--tokens", "2T"), "--seq-len is needed with --model"),
        (("--model", "gpt-9", "--tokens", "2T"), "--model is 'gpt-9'; allowed: llama-2-7b"),
        (("--flops", "-1"), "'-1'; allowed: a number above 0"),
        (("--flops", "1e20", "--gpu", "H9000"), "--gpu is 'H9000', which no table has"),
        (("--flops", "1e20", "--mfu", "40"), "'40'; allowed: above 0 and at most 1"),
        (("--flops", "1e20", "--spares", "150%"), "allowed: from 0 to 1"),
        (("--flops", "1e20", "--gpus-per-node", "0"), "'0'; allowed: a whole number of at least 1"),
        (
            ("--flops", "1e20", "--measured-mfu", "0.3"),
            "--measured-mfu and --measured-goodput are needed together",
        ),
    ],
)
def test_a_wrong_plan_is_refused_with_status_2(ask: Any, options: tuple[str, ...], message: str) -> None:
    usual = ("--gpu", "H100 SXM", "--days", "30", "--mfu", "0.4", "--goodput", "0.9")

    status, _, err = ask("plan", None, *usual, *options)

    assert status == 2
    assert message in err
