"""The paths that a message takes most: passed on by an endpoint or by sequences, and routed by a header, a SOAP header, the body."""

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
</definitions>"""

# What a path is sent; elsewhere it is the plain order.
MESSAGES = {"/services/Soap": "order-routed"}


def message(messages, path, size):
    return messages / f"{MESSAGES.get(path, 'order')}-{size}.xml"
