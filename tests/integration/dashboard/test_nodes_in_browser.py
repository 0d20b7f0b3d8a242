"""Nodes, node and GPU pages in a real browser: what the pointer and the keys do, what the address keeps."""

from typing import Any

HOVER = "document.querySelector('#nodes-map-g .hoverlayer')?.textContent || ''"
WAIT = 30_000


def test_the_pointer_names_a_gpu_and_a_click_opens_its_node(seen: Any) -> None:
    page = seen.open("/ui/nodes?lang=en&theme=light&nodes.metric=tensor_active", "#nodes-map-g .hm")
    box = page.locator("#nodes-map-g .nsewdrag").bounding_box()
    # the first node stands at the left edge, below the label of its rack
    x, y = box["x"] + 6, box["y"] + box["height"] * 0.25

    page.mouse.move(x, y)
    page.wait_for_function(f"() => ({HOVER}).includes('r00-n00')", timeout=WAIT)
    told = page.evaluate(HOVER)
    assert "Tensor activity: " in told
    assert "%" in told

    page.mouse.click(x, y)
    page.wait_for_selector("#node-gpus tbody tr", timeout=WAIT)
    assert page.inner_text("#node-heading h1") == "r00-n00"
    page.click("#node-gpus tbody tr:nth-child(3) a")
    page.wait_for_selector("#gpu-details .fact", timeout=WAIT)
    assert page.inner_text("#gpu-heading h1") == "r00-n00 / GPU 2"
    assert seen.complaints == []


def test_arrow_keys_walk_over_gpus_and_enter_opens_the_node(seen: Any) -> None:
    page = seen.open("/ui/nodes?lang=en&theme=light", "#nodes-map-g .hm")

    page.focus("#nodes-map-keys")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.getElementById('nodes-said').textContent.includes('r00-n01')", timeout=WAIT
    )
    assert "GPU 0" in page.inner_text("#nodes-said")

    page.keyboard.press("Enter")
    page.wait_for_selector("#node-gpus tbody tr", timeout=WAIT)
    assert page.inner_text("#node-heading h1") == "r00-n01"


def test_the_address_holds_metric_grouping_and_filters(seen: Any) -> None:
    page = seen.open("/ui/nodes?lang=en&theme=light", "#nodes-map-g .hm")

    for words in ("Power", "cluster", "with problems"):
        page.locator("#nodes-bar a.pill", has_text=words).first.click()
        page.wait_for_selector(f"#nodes-bar a.pill.on:has-text('{words}')", timeout=WAIT)
    page.fill("#nodes-bar input[name='nodes.find']", "r03")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.getElementById('nodes-map-head')?.innerText.includes('1 of 128')", timeout=WAIT
    )

    address = page.url
    for part in ("nodes.metric=power", "nodes.group=cluster", "nodes.show=problems", "nodes.find=r03"):
        assert part in address
    page.goto(address)
    page.wait_for_function(
        "() => document.getElementById('nodes-map-head')?.innerText.includes('1 of 128')", timeout=WAIT
    )
    page.wait_for_selector("#nodes-grid .ag-row", timeout=WAIT)
    assert page.inner_text("#nodes-grid .ag-row .g-name") == "r03-n05"


def test_new_values_come_without_a_new_picture_of_the_page(seen: Any, served: Any) -> None:
    page = seen.open("/ui/nodes?lang=en&theme=light", "#nodes-map-g .hm")
    page.evaluate("document.querySelector('#nodes-map-g .js-plotly-plot').dataset.same = 'yes'")

    served.query.node_count = 16
    served.query.advance()
    page.wait_for_function(
        "() => document.getElementById('nodes-title').innerText.includes('16 nodes')", timeout=WAIT
    )
    page.wait_for_function(
        "() => document.querySelector('#nodes-map-g .js-plotly-plot').layout.annotations.length === 1",
        timeout=WAIT,
    )
    assert page.evaluate("document.querySelector('#nodes-map-g .js-plotly-plot').dataset.same") == "yes"
    assert seen.complaints == []
