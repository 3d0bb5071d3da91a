#!/usr/bin/env python3
"""How long direct requests wait while others run scripts, stylesheets and expressions of seconds.

    cargo build --profile quick -p busbar && bench/stalls.py [--clients 50] [--seconds 10] [--busbar PATH]

Two workers. A few connections send requests to an unrelated proxy that answers at once, first alone, then beside so many
clients that run long steps: nothing else, then each kind of step, then two clients with messages of 300,000 items that are converted and divided. Latencies in milliseconds. On a machine whose processors are
taken by others the figures say little: compare the rows with the first one.
"""
import argparse, multiprocessing, pathlib, socket, subprocess, tempfile, threading, time

from common import TARGET, free_port, wait_for

SELECTED = "//a[count(//a[count(//a[. = 'x']) &gt; 1]) &gt; 1]"
NESTED = f"count({SELECTED})"
# Each element has keys and references of its own: all pairs are looked at.
PAIRS = "".join(
    f'<s:key name="k{n}"><s:selector xpath="."/><s:field xpath="."/></s:key><s:keyref name="f{n}" refer="k{n}"><s:selector xpath="."/><s:field xpath="."/></s:keyref>'
    for n in range(50)
)
STEPS = {
    "Script": '<script language="js">var end = Date.now() + 1000; while (Date.now() &lt; end) {}</script>',
    "XPath": f'<property name="p" expression="{NESTED}"/>',
    "Xslt": '<xslt key="loops"/>',
    "Validate": '<validate><schema key="pairs"/><on-fail><drop/></on-fail></validate>',
    "Callout": f'<callout serviceURL="http://127.0.0.1:1/"><source xpath="{SELECTED}"/></callout>',
    "Store": f'<store messageStore="{{{NESTED}}}"/>',
}
# What grows with a message: two clients send messages of 300,000 items.
LARGE = {
    "JsonToXml": ("application/json", '<property name="messageType" value="application/xml" scope="axis2"/>'),
    "XmlToJson": ("application/xml", '<property name="messageType" value="application/json" scope="axis2"/>'),
    "Foreach": ("application/xml", '<foreach expression="//a"><sequence><property name="n" value="1"/></sequence></foreach>'),
    "Collection": ("application/json", '<foreach collection="${payload.a}"><sequence><variable name="n" value="1"/></sequence></foreach>'),
}
MANY = {"application/json": '{"a":[' + ",".join(["1"] * 300_000) + "]}", "application/xml": "<r>" + "<a>y</a>" * 300_000 + "</r>"}
CONFIG = """<definitions xmlns="http://ws.apache.org/ns/synapse">
<proxy name="Direct"><target><inSequence><respond/></inSequence></target></proxy>
%s
<localEntry key="pairs"><s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns=""><s:element name="r"><s:complexType><s:sequence>
<s:element name="a" type="s:string" maxOccurs="unbounded">%s</s:element></s:sequence></s:complexType></s:element></s:schema></localEntry>
<localEntry key="loops"><x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform" xmlns=""><x:template match="/"><r>
<x:for-each select="//a"><x:for-each select="//a"><x:for-each select="//a"><x:if test=". = 'x'"><b/></x:if></x:for-each></x:for-each></x:for-each>
</r></x:template></x:stylesheet></localEntry></definitions>"""


def request(service, body, kind="application/xml"):
    return (f"POST /services/{service} HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()


def answer(connection):
    got = b""
    while b"\r\n\r\n" not in got:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError
        got += piece
    head, _, rest = got.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(rest) < length:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError
        rest += piece


def clients(count, *arguments):
    """So many clients, in a process of their own: the one that measures must not wait for them."""
    for _ in range(count):
        threading.Thread(target=heavy, args=arguments).start()


def heavy(port, service, body, kind):
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(request(service, body, kind))
                connection.settimeout(30)
                answer(connection)
        except OSError:
            pass


def direct(port, seconds):
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    message, times, end = request("Direct", "<a/>"), [], time.monotonic() + seconds
    while time.monotonic() < end:
        for connection in connections:
            began = time.perf_counter()
            connection.sendall(message)
            answer(connection)
            times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.005)
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))]
    return len(times), at(0.5), at(0.99), times[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--busbar", default=str(TARGET / "quick" / "busbar"))
    options = parser.parse_args()
    port, work = free_port(), pathlib.Path(tempfile.mkdtemp())
    proxies = "".join(f'<proxy name="{name}"><target><inSequence>{step}<respond/></inSequence></target></proxy>' for name, step in [*STEPS.items(), *((name, step) for name, (_, step) in LARGE.items())])
    (work / "bus.xml").write_text(CONFIG % (proxies, PAIRS))
    with open(work / "log", "w") as log:
        bus = subprocess.Popen([options.busbar, "run", work / "bus.xml", "--http", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--workers", "2"],
                               stdout=log, stderr=log)
        try:
            wait_for(port, 60)
            body = "<r>" + "<a>y</a>" * 600 + "</r>"
            print(f"{'beside':10} {'requests':>9} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
            for name in [None, *STEPS, *LARGE]:
                kind = LARGE[name][0] if name in LARGE else "application/xml"
                count, sent = (2, MANY[kind]) if name in LARGE else (options.clients, body)
                others = multiprocessing.Process(target=clients, args=(count, port, name, sent, kind))
                if name:
                    others.start()
                time.sleep(1)
                count, *figures = direct(port, options.seconds)
                if name:
                    others.kill()
                    others.join()
                print(f"{name or 'nothing':10} {count:9} " + " ".join(f"{figure:8.2f}" for figure in figures), flush=True)
        finally:
            bus.kill()
            bus.wait()


if __name__ == "__main__":
    main()
