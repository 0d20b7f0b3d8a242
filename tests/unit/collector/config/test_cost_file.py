"""The cost file: what it may hold, and what is said of what it may not."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flopwatch import settings
from flopwatch.settings import SettingError
from flopwatch_collector.config_cost_file import read_costs

OWN: dict[str, Any] = {"gpus": 128, "capex_per_gpu": 40_000, "life_years": 4}
CLOUD: dict[str, Any] = {"price_per_gpu_hour": 3}


def read(**costs: Any):
    return read_costs({"costs": costs}, {})


def own(**changes: Any):
    return read(own={**OWN, **changes})


def cloud(**changes: Any):
    return read(cloud={**CLOUD, **changes})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: own(colour=1), "setting costs.own.colour is 1; allowed: one of ", id="unknown"),
        pytest.param(
            lambda: own(life_years=0), "costs.own.life_years is 0.0; allowed: above 0, at most 100", id="life"
        ),
        pytest.param(
            lambda: own(life_years=1e5), "costs.own.life_years is 100000.0; allowed: above 0", id="ages"
        ),
        pytest.param(
            lambda: own(capex_per_gpu=1e300), "costs.own.capex_per_gpu is 1e+300; allowed", id="huge"
        ),
        pytest.param(lambda: own(gpus=0), "costs.own.gpus is 0.0; allowed: 1 or more", id="gpus"),
        pytest.param(
            lambda: own(gpus=1.5), "costs.own.gpus is 1.5; allowed: a whole number", id="half-a-gpu"
        ),
        pytest.param(
            lambda: own(residual_ratio=1), "costs.own.residual_ratio is 1.0; allowed: a ratio", id="residual"
        ),
        pytest.param(
            lambda: own(residual_ratio=-0.1), "costs.own.residual_ratio is -0.1; allowed", id="below-0"
        ),
        pytest.param(
            lambda: own(cost_of_capital=8), "costs.own.cost_of_capital is 8.0; allowed: a ratio", id="percent"
        ),
        pytest.param(lambda: own(pue=0.9), "costs.own.pue is 0.9; allowed: 1 or more", id="pue"),
        pytest.param(
            lambda: own(pue=130), "costs.own.pue is 130.0; allowed: a ratio of at most 5", id="pue-percent"
        ),
        pytest.param(
            lambda: own(idle_kw_per_gpu=1.1, busy_kw_per_gpu=0.3),
            "costs.own.busy_kw_per_gpu is 0.3; allowed: at least idle_kw_per_gpu (1.1)",
            id="power",
        ),
        pytest.param(
            lambda: own(capex_per_gpu="40000"),
            "costs.own.capex_per_gpu is '40000'; allowed: a value",
            id="text",
        ),
        pytest.param(
            lambda: own(capex_per_gpu=True), "costs.own.capex_per_gpu is True; allowed: a value", id="bool"
        ),
        pytest.param(
            lambda: own(capex_per_gpu=float("nan")), "costs.own.capex_per_gpu is nan; allowed", id="nan"
        ),
        pytest.param(
            lambda: own(capex_per_gpu=float("inf")), "costs.own.capex_per_gpu is inf; allowed", id="inf"
        ),
        pytest.param(
            lambda: own(fixed_per_gpu_hour=2),
            "costs.own.fixed_per_gpu_hour is 2.0; allowed: left out beside capex_per_gpu",
            id="bought-and-rented",
        ),
        pytest.param(
            lambda: read(own={"gpus": 8}), "costs.own.capex_per_gpu is None; allowed: a number; or", id="none"
        ),
        pytest.param(lambda: read(own={"capex_per_gpu": 1}), "costs.own.life_years is None", id="no-life"),
        pytest.param(
            lambda: own(staff_fte=2),
            "costs.own.staff_cost_per_fte is None; allowed: a number: staff_fte",
            id="fte",
        ),
        pytest.param(lambda: own(colo_kw_per_gpu=1), "costs.own.colo_per_kw_month is None", id="colo"),
        pytest.param(lambda: own(electricity_per_kwh=0.1), "costs.own.idle_kw_per_gpu is None", id="kw"),
        pytest.param(lambda: own(resale_per_gpu=1_000), "costs.own.remaining_years is None", id="resale"),
        pytest.param(
            lambda: own(currency="EUR"),
            "costs.own.currency is 'EUR'; allowed: costs.currency (USD)",
            id="mix",
        ),
        pytest.param(
            lambda: own(price_date="soon"), "costs.own.price_date is 'soon'; allowed: a date", id="date"
        ),
        pytest.param(
            lambda: cloud(uplift_ratio=15), "costs.cloud.uplift_ratio is 15.0; allowed: a ratio", id="uplift"
        ),
        pytest.param(
            lambda: cloud(billed_per_used=0.9), "costs.cloud.billed_per_used is 0.9; allowed: 1", id="beta"
        ),
        pytest.param(
            lambda: cloud(commitment_ratio=0.5),
            "costs.cloud.commitment_price_per_gpu_hour is None",
            id="commitment",
        ),
        pytest.param(
            lambda: cloud(price_per_server_hour=24),
            "costs.cloud.price_per_server_hour is 24.0; allowed: exactly one",
            id="two",
        ),
        pytest.param(
            lambda: read(cloud={}),
            "costs.cloud.price_per_gpu_hour is None; allowed: exactly one",
            id="no-price",
        ),
        pytest.param(
            lambda: read(cloud={"price_per_server_hour": 24}),
            "costs.cloud.gpus_per_server is None",
            id="server",
        ),
        pytest.param(
            lambda: read(efficiency={"own_mfu": 40}),
            "costs.efficiency.own_mfu is 40.0; allowed: a ratio",
            id="mfu",
        ),
        pytest.param(
            lambda: read(efficiency={"own_peak_tflops": 989.4e12}),
            "dense TFLOP/s of one GPU, above 0",
            id="peak",
        ),
        pytest.param(
            lambda: read(currency="dollars"), "costs.currency is 'dollars'; allowed: a code", id="currency"
        ),
        pytest.param(
            lambda: read(own=OWN, price_per_gpu_hour=2),
            "costs.price_per_gpu_hour is 2.0; allowed: left out: it follows from [costs.own]",
            id="two-prices",
        ),
        pytest.param(
            lambda: read(own=OWN, cloud=CLOUD, breakeven_ratio=0.6),
            "costs.breakeven_ratio is 0.6; allowed: left out",
            id="line",
        ),
        pytest.param(lambda: read(own=3), "setting costs.own is 3; allowed: a table", id="no-table"),
        pytest.param(
            lambda: read(demand={"gpus": [8], "time_ratio": [0.5]}),
            "shares of the time that add up to 1",
            id="demand",
        ),
        pytest.param(
            lambda: read(group={"name": "a"}), "allowed: an array of tables, [[costs.group]]", id="group"
        ),
        pytest.param(
            lambda: read(own=OWN, group=[{"name": "a"}, {"name": "a"}]),
            "costs.group.name is 'a'; allowed: each",
            id="twice",
        ),
        pytest.param(
            lambda: read(own=OWN, group=[{"name": "a", "pue": 0.5}]),
            "costs.group.a.pue is 0.5; allowed: 1",
            id="group-pue",
        ),
        pytest.param(
            lambda: read(own=OWN, group=[{"name": "a", "cloud": {"uplift_ratio": 0.1}}]),
            "costs.group.a.cloud.price_per_gpu_hour is None",
            id="group-cloud",
        ),
        pytest.param(
            lambda: read(group=[{"name": "a", "kind": "on_demand"}]),
            "costs.group.a.price_per_gpu_hour is None",
            id="spot",
        ),
        pytest.param(
            lambda: read(group=[{"name": "a", "kind": "bought"}]),
            "costs.group.kind is 'bought'; allowed: one of",
            id="kind",
        ),
    ],
)
def test_a_wrong_input_names_itself_its_value_and_what_is_allowed(make, message):
    with pytest.raises(SettingError) as error:
        make()

    assert message in str(error.value)


def test_whole_numbers_stand_for_numbers_and_texts_for_dates():
    found = own(price_date="2026-11-01").own

    assert (found.gpus, found.capex_per_gpu, found.price_date) == (128.0, 40_000.0, date(2026, 11, 1))


def test_an_owned_group_takes_from_the_site_what_it_leaves_out():
    site = {**OWN, "staff_fte": 2, "staff_cost_per_fte": 200_000, "pue": 1.3}

    (group,) = read(own=site, cloud=CLOUD, group=[{"name": "old", "gpus": 32, "capex_per_gpu": 20_000}]).group

    assert (group.gpus, group.own.capex_per_gpu, group.own.pue) == (32, 20_000, 1.3)
    # The site's team is shared by the site's GPUs.
    assert group.own.gpus == 128
    assert group.cloud.price_per_gpu_hour == 3


def test_a_group_with_a_team_of_its_own_shares_it_among_its_own_gpus():
    site = {**OWN, "staff_fte": 2, "staff_cost_per_fte": 200_000, "migration_once": 1_000}
    team = {"name": "lab", "gpus": 32, "staff_fte": 1, "staff_cost_per_fte": 100_000}

    (group,) = read(own=site, group=[team]).group

    assert (group.own.gpus, group.own.staff_fte, group.own.migration_once) == (32, 1, None)


def test_a_leased_group_stands_for_itself():
    leased = {"name": "metal", "kind": "leased", "rent_per_server_month": 11_680, "gpus_per_server": 8}

    (group,) = read(own={**OWN, "pue": 1.3}, group=[leased]).group

    assert (group.own.capex_per_gpu, group.own.pue, group.own.rent_per_server_month) == (None, None, 11_680)


def test_a_group_may_have_another_cloud_price_and_efficiency():
    group = {"name": "new", "cloud": {"price_per_gpu_hour": 5}, "efficiency": {"own_mfu": 0.3}}

    (found,) = read(
        own=OWN,
        cloud={**CLOUD, "uplift_ratio": 0.1, "price_date": "2026-01-01"},
        efficiency={"cloud_mfu": 0.4},
        group=[group],
    ).group

    assert (found.cloud.price_per_gpu_hour, found.cloud.uplift_ratio, found.cloud.price_date) == (
        5,
        0.1,
        None,
    )
    assert (found.efficiency.own_mfu, found.efficiency.cloud_mfu) == (0.3, 0.4)


def test_the_environment_reaches_the_tables_of_the_costs():
    environ = {"FLOPWATCH_COSTS_CLOUD_PRICE_PER_GPU_HOUR": "2.5", "FLOPWATCH_COSTS_CURRENCY": "EUR"}

    found = read_costs({}, environ)

    assert (found.currency, found.cloud.price_per_gpu_hour, found.own) == ("EUR", 2.5, None)


def test_a_file_that_is_no_toml_is_said_by_its_option(tmp_path: Path):
    file = tmp_path / "costs.toml"
    file.write_text("[costs.own\n")

    with pytest.raises(SettingError, match=r"setting --costs is .*allowed: valid TOML"):
        settings.load(file, "--costs")
