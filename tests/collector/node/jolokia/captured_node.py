"""The MBeans that were captured from real nodes by requesting the whole catalogue."""

from collector.model.metric import Values
from collector.node.catalogue import BEANS
from collector.node.selection import Selection
from tests.collector import captures
from tests.collector.nodes import Beans, Node


def beans(version: str) -> Beans:
    """Return the captured node's MBeans with the values of the requested attributes."""
    attributes_of: Beans = {}
    for pair in captures.bulk(version):
        attribute, value = pair["request"].get("attribute"), pair["response"]["value"]
        attributes = {attribute: value} if isinstance(attribute, str) else value
        attributes_of.setdefault(pair["request"]["mbean"], {}).update(attributes)
    return attributes_of


def read(version: str, selection: Selection) -> Values:
    node = Node(BEANS, selection=selection)
    for name, attributes in beans(version).items():
        node.jolokia.beans.setdefault(name, {}).update(attributes)
    return dict(node.tick().values)
