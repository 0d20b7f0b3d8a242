"""A port that loses its rate, on its way from the wire to an alert."""

from tests.integration.views.site import INTERVAL, Site

from flopwatch.wire import PortSample

NODES = ("n1", "n2", "n3", "n4")
FULL, HALF = 400e9, 200e9


def minutes(site: Site, count: int, rates: dict[str, float]) -> None:
    """All nodes report their one port for some minutes, with an evaluation after each."""
    for _ in range(count):
        start = site.now
        for node in NODES:
            ports = tuple(
                PortSample(
                    time_seconds=start + at, port="mlx5_0/1", role="rdma", link_up=True,
                    link_rate_bits_per_second=rates.get(node, FULL), transmit_bytes=1, receive_bytes=1,
                )
                for at in (INTERVAL, 2 * INTERVAL)
            )  # fmt: skip
            site.push(node, start, 2 * INTERVAL, port_samples=ports)
        site.tick()


def degraded(site: Site) -> list[tuple[str, str, object, object]]:
    active = (
        row for row in site.engine.active() if row.rule == "LinkDegraded" and row.fired_seconds is not None
    )
    return [
        (row.labels["node"], row.labels["link"], row.values["value"], row.values["usual"]) for row in active
    ]


def test_a_port_at_half_of_its_peers_rate_for_five_minutes_is_degraded(site: Site) -> None:
    minutes(site, 1, {})
    minutes(site, 3, {"n3": HALF})
    assert degraded(site) == []
    minutes(site, 4, {"n3": HALF})
    assert degraded(site) == [("n3", "mlx5_0/1", HALF, FULL)]
