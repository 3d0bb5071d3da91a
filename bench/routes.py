"""The paths that a message takes most: passed on by an endpoint or by sequences, routed by a header, a SOAP header, an early
value of the body or all of it, and transformed both ways by the stylesheets of the round."""
import pathlib, re

ENTRIES = pathlib.Path(__file__).resolve().parent.parent / "examples/round/local-entries"

CONFIG = """<definitions xmlns="http://ws.apache.org/ns/synapse">
<endpoint name="Echo"><address uri="http://127.0.0.1:{backend}/services/EchoService"/></endpoint>
<proxy name="Direct"><target endpoint="Echo"/></proxy>
<proxy name="Sequences"><target><inSequence><send><endpoint key="Echo"/></send></inSequence><outSequence><send/></outSequence></target></proxy>
<proxy name="Header"><target><inSequence><filter source="$trp:X-Route" regex="echo"><then><send><endpoint key="Echo"/></send></then>
  <else><drop/></else></filter></inSequence><outSequence><send/></outSequence></target></proxy>
<proxy name="Soap"><target><inSequence><filter xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:r="http://someuri"
  source="/s:Envelope/s:Header/r:routing" regex=".*community.*"><then><send><endpoint key="Echo"/></send></then>
  <else><drop/></else></filter></inSequence><outSequence><send/></outSequence></target></proxy>
<proxy name="Body"><target><inSequence><filter xpath="//order[1]/symbol = 'IBM'"><then><send><endpoint key="Echo"/></send></then>
  <else><drop/></else></filter></inSequence><outSequence><send/></outSequence></target></proxy>
<proxy name="Scan"><target><inSequence><filter xpath="//symbol = 'none'"><then><drop/></then>
  <else><send><endpoint key="Echo"/></send></else></filter></inSequence><outSequence><send/></outSequence></target></proxy>
<proxy name="Xslt"><target><inSequence><xslt key="ReversedToOrder"/><send><endpoint key="Echo"/></send></inSequence>
  <outSequence><xslt key="OrderToReversed"/><send/></outSequence></target></proxy>
<proxy name="FastXslt"><target><inSequence><fastXSLT key="ReversedToOrder"/><send><endpoint key="Echo"/></send></inSequence>
  <outSequence><fastXSLT key="OrderToReversed"/><send/></outSequence></target></proxy>
{entries}
</definitions>"""


def config(backend):
    """The configuration, with the stylesheets of the round."""
    texts = [(ENTRIES / f"{name}.xml").read_text() for name in ["ReversedToOrder", "OrderToReversed"]]
    return CONFIG.format(backend=backend, entries="\n".join(re.sub(r"<!--.*?-->", "", text, flags=re.S) for text in texts))


# What a path is sent; elsewhere it is the plain order.
MESSAGES = {"/services/Soap": "order-routed", "/services/Xslt": "order-reversed", "/services/FastXslt": "order-reversed"}


def message(messages, path, size):
    return messages / f"{MESSAGES.get(path, 'order')}-{size}.xml"


def answer(path, body):
    """What a path answers: the request. (The stylesheets leave out the white space that fills messages up to their size.)"""
    return re.sub(rb">\s+<", b"><", body) if path.endswith("Xslt") else body
