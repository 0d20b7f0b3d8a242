import gzip
import hashlib
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import flopwatch_dashboard

ASSETS = Path(flopwatch_dashboard.__file__).parent / "assets"
BUNDLE = ASSETS / "plotly-cartesian.min.js"


def get(url: str, **headers: str) -> tuple[int, bytes, Any]:
    request = urllib.request.Request(
        url, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read(), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def script(served: Any, part: str) -> str:
    _, page, _ = get(served.url + "/ui/")
    found = [each for each in re.findall(r'src="([^"]+)"', page.decode()) if part in each]
    assert len(found) == 1
    return str(served.url + found[0])


def test_the_charts_library_is_the_unmodified_bundle_and_travels_compressed(served: Any) -> None:
    url = script(served, "plotly-cartesian")
    status, body, headers = get(url, accept_encoding="gzip, br")

    assert status == 200
    assert headers["content-encoding"] == "gzip"
    assert len(body) < 0.4 * BUNDLE.stat().st_size
    digest = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"
    assert hashlib.sha256(gzip.decompress(body)).hexdigest() == digest


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "br"])
def test_a_client_that_takes_no_gzip_gets_the_file_as_it_is(served: Any, accepted: str) -> None:
    _, body, headers = get(script(served, "ui.js"), accept_encoding=accepted)

    assert "content-encoding" not in headers
    assert body == (ASSETS / "ui.js").read_bytes()


def test_an_unchanged_file_is_not_sent_again(served: Any) -> None:
    url = script(served, "ui.js")
    _, _, first = get(url)
    status, body, again = get(url, if_none_match=f'W/{first["etag"]}, "other"')
    changed, whole, _ = get(url, if_none_match='"other"')

    assert (status, body) == (304, b"")
    assert again["etag"] == first["etag"]
    assert changed == 200
    assert whole == (ASSETS / "ui.js").read_bytes()


def test_scripts_of_the_installed_version_may_be_kept_for_ever(served: Any) -> None:
    _, _, headers = get(script(served, "dash_renderer.v"))

    assert "max-age=31536000" in headers["cache-control"]


def test_a_file_that_is_not_there_is_said_to_be_missing(served: Any) -> None:
    assert get(served.url + "/ui/assets/nothing.js")[0] == 404
