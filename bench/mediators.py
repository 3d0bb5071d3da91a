#!/usr/bin/env python3
"""What each mediator costs in a flow, beside the direct proxy.

    cargo build --release && bench/mediators.py [--seconds 1] [--rounds 3] [--only Property,Filter] [--write docs/performance.md]
    cargo build --profile quick -p busbar && bench/mediators.py --instructions [--top 20] [--only …] [--write …]

The flows are the proxies of bench/mediators.xml. They take turns on one worker, which is pinned to core 0; the backend (`busbar
backend`) and wrk with 32 connections share core 1. CPU is user plus system time of the bus per request, the smallest of the
rounds is shown, and only the ratio to the direct proxy means anything: that is the median of the rounds, each beside the direct proxy
measured just before and behind. One answer of each flow is checked for its
content, all for their status. The log goes to a file.

--instructions counts instructions in user space per request under callgrind, which no other load disturbs; --top lists the
functions of each flow. --write puts what is printed into a document, between its markers. Needs wrk (and valgrind).
"""
import argparse, json, pathlib, re, statistics, subprocess, sys, tempfile

from common import HEADERS, ROOT, TARGET, Counted, Machines, ask, cost, free_port, need, script, table, wait_for, write

ROW = re.compile(r"<!-- (\w+) \| (.+?) \| (\w+) \| (.+?) -->\s*<proxy name=\"(\w+)\"")
GROUPS = dict(direct="One call", headers="Reading headers and properties", body="Reading the body",
              payload="A new or changed payload", script="Scripts", calls="Other calls", own="Without a backend")
BUDGET = 1.05  # of the group `headers`
BLOCK = 6  # rows between two measurements of the direct proxy


class Flow:
    """A proxy of the configuration and its row in the table."""

    def __init__(self, group, label, message, answer, name):
        self.group, self.label, self.message, self.answer, self.name = group, label, message, answer, name
        self.path = f"/services/{name}"
        self.figures, self.ratios = [], []

    def check(self, port, message):
        # twice: the second answer of a cache is the one that counts
        for _ in range(2):
            status, body = ask(port, self.path, message.body, message.headers)
        if status != 200 or (body != message.body if self.answer == "same" else self.answer.encode() not in body):
            return f"{self.name}: {status} {body.decode(errors='replace')[:1500]}\nexpected: {self.answer}"


class Message:
    def __init__(self, work, name, body, content_type="text/xml", action="urn:buyStocks"):
        self.body, self.headers = body, {**HEADERS, "Content-Type": content_type, "SOAPAction": f'"{action}"'}
        file = work / f"{name}.body"
        file.write_bytes(body)
        self.lua = script(work, name, file, self.headers)


def messages(work, busbar):
    """The messages of about 1 KB that the flows get, by name."""
    subprocess.run([busbar, "bench", "messages", "--dir", work / "messages"], check=True, stdout=subprocess.DEVNULL)
    read = lambda name: (work / "messages" / name).read_bytes()
    orders = [dict(zip(("symbol", "buyerID", "price", "volume"), (symbol, buyer, float(price), int(volume))))
              for symbol, buyer, price, volume in re.findall(
                  r"<symbol>(.*?)</symbol><buyerID>(.*?)</buyerID><price>(.*?)</price><volume>(.*?)</volume>", read("order-1k.xml").decode())]
    return dict(order=Message(work, "order", read("order-1k.xml")),
                reversed=Message(work, "reversed", read("order-reversed-1k.xml")),
                quotes=Message(work, "quotes", read("quotes-11.xml"), action="urn:getQuotes"),
                json=Message(work, "json", json.dumps({"orders": orders}, indent=1).encode(), "application/json"))


def flows(only):
    found = [Flow(*row) for row in ROW.findall((ROOT / "bench" / "mediators.xml").read_text())]
    wanted = [word.lower() for word in only.split(",") if word]
    return [flow for flow in found if flow.name == "Direct" or not wanted or any(word in flow.name.lower() for word in wanted)]


def bar(ratio):
    """Ten blocks for the direct proxy."""
    return "█" * min(round(ratio * 10), 60) + ("…" if ratio > 6 else "")


def report(rows, heads, cells):
    """A table for each group; `cells` gives the figures of a flow, the last one its ratio."""
    parts = []
    for group, title in GROUPS.items():
        members = [flow for flow in rows if flow.group == group]
        if members:
            parts.append(table([title, *heads, ""], [[flow.label, *cells(flow), bar(flow.ratio)] for flow in members]))
    return "\n\n".join(parts)


def timed(options, rows, sent, bus, port):
    def measure(flow):
        return cost(bus, port, flow.path, sent[flow.message].lua, options.seconds)[0]

    direct, *others = rows
    direct.ratio, direct.figures = 1.0, [measure(direct)]
    for _ in range(options.rounds):
        for start in range(0, len(others), BLOCK):
            block = others[start:start + BLOCK]
            figures = [measure(flow) for flow in block]
            direct.figures.append(measure(direct))
            # What else goes on changes slowly: a row is compared with the direct proxy just before and behind it.
            beside = sum(direct.figures[-2:]) / 2
            for flow, figure in zip(block, figures):
                flow.figures.append(figure)
                flow.ratios.append(figure / beside)
    for flow in others:
        flow.ratio = statistics.median(flow.ratios)
    return report(rows, ["CPU µs:", "x direct:"], lambda flow: (f"{min(flow.figures):.1f}", f"{flow.ratio:.2f}"))


def counted(options, rows, sent, bus, port):
    for flow in rows:
        own, calls, requests = bus.count(port, flow.path, sent[flow.message].lua, options.seconds)
        flow.count = sum(own.values()) / requests
        direct = rows[0].count
        flow.ratio = flow.count / direct
        print(f"{flow.name}: {flow.count:,.0f} ({flow.count - direct:+,.0f})", file=sys.stderr, flush=True)
        for function, count in own.most_common(options.top):
            print(f"{count / requests:9.1f} {calls[function] / requests:7.2f}  {function[:170]}")
    return report(rows, ["instructions:", "more than direct:", "x direct:"],
                  lambda flow: (f"{flow.count:,.0f}", f"{flow.count - direct:,.0f}", f"{flow.ratio:.2f}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--top", type=int, default=0)
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--busbar")
    options = parser.parse_args()
    options.busbar = options.busbar or str(TARGET / ("quick" if options.instructions else "release") / "busbar")
    need("wrk", "taskset")
    work = pathlib.Path(tempfile.mkdtemp())
    rows, sent = flows(options.only), messages(work, options.busbar)
    backend, port = free_port(), free_port()
    config = (ROOT / "bench" / "mediators.xml").read_text().replace("@BACKEND@", str(backend))
    (work / "bus.xml").write_text(config)
    command = [options.busbar, "run", work / "bus.xml", "--strict", "--http", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--workers", "1"]
    with Machines(work) as machines:
        machines.start(None if options.instructions else 1, options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--workers", "1")
        bus = Counted(machines, *command) if options.instructions else machines.start(0, *command)
        wait_for(backend)
        wait_for(port, 60)
        wrong = [found for flow in rows if (found := flow.check(port, sent[flow.message]))]
        if wrong:
            sys.exit("\n".join(wrong))
        text = (counted if options.instructions else timed)(options, rows, sent, bus, port)
    if options.write:
        write(options.write, "mediators --instructions" if options.instructions else "mediators", text)
    print(text)
    if not options.instructions:
        dear = [f"{flow.name} {flow.ratio:.2f}" for flow in rows if flow.group == "headers" and flow.ratio > BUDGET]
        print(f"\nbeyond the budget of {BUDGET}: {', '.join(dear) or 'none'}", file=sys.stderr)


if __name__ == "__main__":
    main()
