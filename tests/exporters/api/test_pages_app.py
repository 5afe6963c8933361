"""The pages of several nodes, and their list for Prometheus' HTTP service discovery."""

import gzip

from exporters.api.app import pages_app
from tests.exporters.api.asking import ask


class Page:
    """A page that names its node."""

    def __init__(self, name: str) -> None:
        self._name = name

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        body = f"{self._name} {openmetrics}".encode()
        return gzip.compress(body) if compressed else body


APP = pages_app({name: Page(name) for name in ("10.0.0.1", "10.0.0.2")})


def test_each_target_has_the_path_of_its_page_and_the_address_that_the_client_used() -> None:
    answered = ask(APP, "GET", "/targets", host="stores.example:80")
    assert answered.status == 200
    assert answered.headers["content-type"] == "application/json"
    assert answered.content == [
        {
            "targets": ["stores.example:80"],
            "labels": {"__metrics_path__": f"/metrics/{name}", "instance": name},
        }
        for name in ("10.0.0.1", "10.0.0.2")
    ]


def test_a_page_is_served_in_the_format_that_the_client_prefers() -> None:
    assert ask(APP, "GET", "/metrics/10.0.0.2", host="h").body == b"10.0.0.2 False"
    answered = ask(
        APP, "GET", "/metrics/10.0.0.1", host="h", accept="application/openmetrics-text", accept_encoding="gzip"
    )
    assert gzip.decompress(answered.body) == b"10.0.0.1 True"


def test_an_unknown_node_has_no_page() -> None:
    answered = ask(APP, "GET", "/metrics/10.0.0.3", host="h")
    assert (answered.status, answered.content) == (404, {"error": "no such path"})
