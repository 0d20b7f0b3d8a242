import re
from dataclasses import fields
from pathlib import Path

import pytest

from flopwatch.settings import SettingError
from flopwatch_collector import config, config_costs

DOCUMENT = Path(__file__).parents[4] / "docs" / "settings.md"


def wrong(tables: dict[str, object], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingError) as caught:
        config.read(tables, environ or {})
    return str(caught.value)


def test_without_a_file_the_collector_listens_on_this_machine_only() -> None:
    settings = config.read({}, {})

    assert (settings.collector.host, settings.collector.port) == ("127.0.0.1", 8095)
    assert settings.targets.default is None
    assert settings.costs.price_per_gpu_hour is None
    assert settings.notify == ()


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        pytest.param(
            {"collector": {"prot": 1}},
            "setting collector.prot is 1; allowed: one of clickhouse_ca_file, ",
            id="unknown setting",
        ),
        pytest.param(
            {"collector": {"port": 70_000}}, "setting collector.port is 70000; allowed: 0 to 65535", id="port"
        ),
        pytest.param(
            {"collector": {"port": "80"}},
            "setting collector.port is '80'; allowed: a value of type int",
            id="type",
        ),
        pytest.param(
            {"collector": {"time_zone": "Mars"}},
            "setting collector.time_zone is 'Mars'; allowed: an IANA zone such as Europe/Berlin",
            id="time zone",
        ),
        pytest.param(
            {"collector": {"store": "postgres"}},
            "setting collector.store is 'postgres'; allowed: one of embedded",
            id="store",
        ),
        pytest.param(
            {"collector": {"tls_cert": "a.pem"}},
            "setting collector.tls_key is 'None'; allowed: both tls_cert and tls_key, or neither",
            id="half of TLS",
        ),
        pytest.param(
            {"targets": {"job": {"llama*": 45}}},
            "setting targets.job.llama* is 45; allowed: a ratio above 0, at most 1 (0.45 for 45 %)",
            id="percent as ratio",
        ),
        pytest.param(
            {"costs": {"price_per_gpu_hour": -1.0}},
            "setting costs.price_per_gpu_hour is -1.0; allowed: 0 or more",
            id="price",
        ),
        pytest.param(
            {"alerts": {"send": ["MfuTooLow"]}},
            "setting alerts.send is 'MfuTooLow'; allowed: names of rules: MfuLow, ",
            id="rule",
        ),
        pytest.param(
            {"notify": {"url": "x"}},
            "setting notify is {'url': 'x'}; allowed: an array of tables, [[notify]]",
            id="notify as a table",
        ),
        pytest.param(
            {"notify": [{"kind": "pigeon"}]},
            "setting notify.kind is 'pigeon'; allowed: one of webhook",
            id="channel",
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_value_and_what_is_allowed(
    tables: dict[str, object], message: str
) -> None:
    assert wrong(tables).startswith(message)


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    price = tmp_path / "price"
    price.write_text("2.5\n")
    environ = {
        "FLOPWATCH_COLLECTOR_PORT": "9000",
        "FLOPWATCH_COLLECTOR_INSECURE": "yes",
        "FLOPWATCH_COSTS_PRICE_PER_GPU_HOUR_FILE": str(price),
    }

    settings = config.read({"collector": {"port": 1}}, environ)

    assert (settings.collector.port, settings.collector.insecure) == (9000, True)
    assert settings.costs.price_per_gpu_hour == 2.5


def test_data_lies_where_it_is_set_else_below_the_state_directory(tmp_path: Path) -> None:
    set_here = config.CollectorSettings(data_dir=tmp_path)
    default = config.CollectorSettings()

    assert config.data_folder(set_here, {"FLOPWATCH_DATA_DIR": "/elsewhere"}) == tmp_path
    assert config.data_folder(default, {"FLOPWATCH_DATA_DIR": "/d"}) == Path("/d/collector")
    assert config.data_folder(default, {"XDG_STATE_HOME": "/s"}) == Path("/s/flopwatch/collector")
    assert config.data_folder(default, {"HOME": "/h"}) == Path("/h/.local/state/flopwatch/collector")


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("collector", config.CollectorSettings),
        ("targets", config.TargetSettings),
        ("costs", config.CostSettings),
        ("costs.own", config_costs.OwnCosts),
        ("costs.cloud", config_costs.CloudCosts),
        ("costs.efficiency", config_costs.EfficiencySettings),
        ("costs.demand", config_costs.DemandSettings),
        ("costs.group", config_costs.CostGroup),
        ("alerts", config.AlertSettings),
        ("notify", config.NotifySettings),
    ],
)
def test_every_setting_is_documented_with_its_default(table: str, kind: type) -> None:
    text = DOCUMENT.read_text()

    for setting in fields(kind):
        assert re.search(rf"^\| `{table}\.{setting.name}` \| ", text, re.MULTILINE), setting.name


H100 = "NVIDIA H100 80GB HBM3"


def override(**changes: object) -> dict[str, object]:
    entry = {"name": H100, "dense_tflops": {"bf16": 800.0}, "source": "our matmul", **changes}
    return {"accelerators": {"override": [entry]}}


def test_a_site_sets_its_own_peaks_and_keeps_the_tables_others() -> None:
    (device,) = config.read(override(), {}).site_accelerators()

    assert device.peak_flops("bf16") == 800e12
    assert device.peak_flops("fp8") == 1978.9e12
    assert device.source == "site setting: our matmul"


def test_a_gpu_that_no_table_has_gets_a_peak_by_its_exact_name() -> None:
    (device,) = config.read(
        override(name="NVIDIA X9", dense_tflops={"bfloat16": 1750}), {}
    ).site_accelerators()

    assert (device.name, device.peak_flops("bf16"), device.peak_flops("fp8")) == ("NVIDIA X9", 1750e12, None)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        pytest.param(
            override(name=""),
            "setting accelerators.override.name is ''; allowed: a GPU's exact NVML name, without a MIG profile",
            id="no-name",
        ),
        pytest.param(
            override(name=f"{H100} MIG 1g.10gb"),
            f"setting accelerators.override.name is '{H100} MIG 1g.10gb'; "
            "allowed: a GPU's exact NVML name, without a MIG profile",
            id="instance",
        ),
        pytest.param(
            override(source=" "),
            "setting accelerators.override.source is ' '; allowed: where the peaks are from, in words",
            id="no-source",
        ),
        pytest.param(
            override(dense_tflops={}),
            "setting accelerators.override.dense_tflops is {}; "
            "allowed: TFLOP/s by number format, such as { bf16 = 989.4 }",
            id="no-peak",
        ),
        pytest.param(
            override(dense_tflops={"posit8": 1.0}),
            "setting accelerators.override.dense_tflops.posit8 is 1.0; allowed: a number format: fp64, fp32, ",
            id="format",
        ),
        pytest.param(
            override(dense_tflops={"bf16": 989.4e12}),
            "setting accelerators.override.dense_tflops.bf16 is 989400000000000.0; "
            "allowed: dense TFLOP/s of one GPU, above 0 and below 1000000",
            id="unit",
        ),
        pytest.param(
            override(dense_tflops={"bf16": "800"}),
            "setting accelerators.override.dense_tflops.bf16 is '800'; "
            "allowed: dense TFLOP/s of one GPU, above 0 and below 1000000",
            id="text",
        ),
        pytest.param(
            override(peak=1),
            "setting accelerators.override.peak is 1; allowed: one of dense_tflops, ",
            id="unknown",
        ),
        pytest.param(
            {"accelerators": {"overrides": []}},
            "setting accelerators.overrides is []; allowed: one of override",
            id="unknown-table",
        ),
        pytest.param(
            {"accelerators": {"override": {"name": H100}}},
            "allowed: an array of tables, [[accelerators.override]]",
            id="one-table",
        ),
        pytest.param(
            {"accelerators": {"override": [*override()["accelerators"]["override"]] * 2}},  # type: ignore[index]
            f"setting accelerators.override.name is '{H100}'; allowed: each GPU model once",
            id="twice",
        ),
    ],
)
def test_a_wrong_peak_names_the_setting_its_value_and_what_is_allowed(
    tables: dict[str, object], message: str
) -> None:
    assert message in wrong(tables)
