#!/usr/bin/env python3
"""The XML, XPath and XSLT engines beside libxslt/libxml2, Saxon-HE, Xalan and quick-xml, in one run.

  bench/engines/run.py [orders] [xsltmark] [docbook] [xpath] [parse] [versions]     default: orders xsltmark xpath parse

versions: instructions of our engine for the stylesheets of `orders` as version 1.0, 2.0 and 3.0, with nothing else changed.

  --engines busbar,libxslt,saxon,xalan   who takes part (the first is what the others are compared with)
  --only TEXT          only cases with TEXT in their name
  --rounds N           rounds; the smallest time counts (default 5)
  --ms N               CPU milliseconds per measurement (default 40)
  --warm N             CPU milliseconds of warm-up of the Java engines per case and phase (default 1500)
  --phases run,whole   run: the parsed input is transformed and the result serialised; whole: parsed as well
  --instructions       instructions per call (callgrind) of ours and libxslt's
  --core N             the core all engines share (default 0)
  --json FILE          writes every figure

All engines get the same bytes in memory and give bytes. Each is one process on the same core; they take turns, and what
counts is CPU time: ours of all threads, Java's without its compiler and garbage collector. Before a
case is timed its results are compared (Canonical XML, text, or HTML as trees); an engine with another result has no figure.

Needs gcc, libxslt1-dev, a JDK 17 or later, python3-lxml, for --instructions valgrind. Saxon and Xalan come from Maven Central into
~/.cache/busbar-peers. The cases of xsltmark and docbook are read from $BUSBAR_SUITES/conformance/xsltmark."""
import argparse
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from common import ROOT, SUITES, TARGET

CACHE = os.path.expanduser("~/.cache/busbar-peers")
CENTRAL = "https://repo1.maven.org/maven2/"
JARS = [
    "net/sf/saxon/Saxon-HE/12.5/Saxon-HE-12.5.jar",
    "org/xmlresolver/xmlresolver/5.2.2/xmlresolver-5.2.2.jar",
    "xalan/xalan/2.7.3/xalan-2.7.3.jar",
    "xalan/serializer/2.7.3/serializer-2.7.3.jar",
]
SIZES = {"1k": 1 << 10, "10k": 10 << 10, "100k": 100 << 10, "1m": 1 << 20}


# The peers.

def build_busbar():
    subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--profile", "quick", "-p", "busbar-xslt", "--example", "engine_worker"],
                   cwd=ROOT, check=True)
    return [os.path.join(TARGET, "quick", "examples", "engine_worker")]


def build_libxslt():
    program = os.path.join(CACHE, "libxslt-peer")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libexslt", "libxslt", "libxml-2.0"],
                           check=True, capture_output=True, text=True).stdout.split()
    subprocess.run(["gcc", "-O2", "-w", "-o", program, os.path.join(HERE, "peers", "libxslt.c"), *flags], check=True)
    return [program]


def build_java(engine):
    for jar in JARS:
        file = os.path.join(CACHE, os.path.basename(jar))
        if not os.path.exists(file):
            with urllib.request.urlopen(CENTRAL + jar, timeout=60) as answer, open(file + ".part", "wb") as out:
                out.write(answer.read())
            os.rename(file + ".part", file)
    path = ":".join(os.path.join(CACHE, os.path.basename(jar)) for jar in JARS)
    source = os.path.join(HERE, "peers", "Peer.java")
    compiled = os.path.join(CACHE, "Peer.class")
    if not os.path.exists(compiled) or os.path.getmtime(compiled) < os.path.getmtime(source):
        subprocess.run(["javac", "-cp", path, "-d", CACHE, source], check=True)
    return ["java", "-Xss64m", "-Xms512m", "-Xmx1g", "-XX:+UseSerialGC", "-cp", CACHE + ":" + path, "Peer", engine]


BUILD = {"busbar": build_busbar, "libxslt": build_libxslt,
         "saxon": lambda: build_java("saxon"), "xalan": lambda: build_java("xalan")}


class Peer:
    def __init__(self, name, command, core):
        self.name, self.command, self.core = name, command, core
        self.start()

    def start(self):
        self.process = subprocess.Popen(["taskset", "-c", str(self.core), *self.command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, *fields):
        """The answer's words behind "ok", or None with the reason in `why`."""
        try:
            self.process.stdin.write("\t".join(map(str, fields)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line.startswith("ok"):
            return line.split()[1:]
        self.why = line.strip() or "the process ended"
        if not line:
            self.stop()
            self.start()
        return None

    def stop(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


# The cases.

class Case:
    def __init__(self, name, load, compare="xml-canonical", expected=None):
        self.name, self.load, self.compare, self.expected = name, load, compare, expected


def order_message(size, reverse):
    names = ["buyStocks", "order", "symbol", "buyerID", "price", "volume"]
    payload, order, *fields = [n[::-1] for n in names] if reverse else names
    text = ['<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>'
            f'<m:{payload} xmlns:m="http://services.samples/xsd">']
    tail = f"</m:{payload}></soapenv:Body></soapenv:Envelope>"
    length, at = len(text[0]) + len(tail), 0
    while True:
        values = ["IBM", "asankha", f"{140 + at % 50}.34", str(2000 + at % 900)]
        one = f"<{order}>" + "".join(f"<{n}>{v}</{n}>" for n, v in zip(fields, values)) + f"</{order}>"
        if at and length + len(one) > size:
            break
        text.append(one)
        length, at = length + len(one), at + 1
    return "".join(text) + tail


def order_cases(folder):
    sheets = {}
    for name in ["rename", "foreach"]:
        sheets[name] = (os.path.join(HERE, "sheets", name + ".xsl"), True)
    for name, reverse in [("ReversedToOrder", True), ("OrderToReversed", False)]:
        with open(os.path.join(ROOT, "examples/round/local-entries", name + ".xml"), encoding="utf-8") as entry:
            found = re.search(r"<xsl:stylesheet.*</xsl:stylesheet>", entry.read(), re.S)
        file = os.path.join(folder, name + ".xsl")
        with open(file, "w", encoding="utf-8") as out:
            out.write(found.group(0))
        sheets[name] = (file, reverse)
    cases = []
    for name, (sheet, reverse) in sheets.items():
        for size, count in SIZES.items():
            file = os.path.join(folder, f"{size}-{'reversed' if reverse else 'orders'}.xml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(order_message(count, reverse))
            cases.append(Case(f"{name} {size}", ("load", sheet, file)))
    return cases


def suite_cases(group):
    folder = os.path.join(SUITES, "conformance", "xsltmark")
    cases = []
    with open(os.path.join(folder, "manifest.jsonl"), encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            if case["group"] == group:
                files = [os.path.join(folder, case["files"][which]) for which in ("stylesheet", "input")]
                case_ = Case(case["id"].split("/")[1], ("load", *files), case["compare"],
                             os.path.join(folder, case["expected"]))
                case_.masked = case.get("generated_ids", False)
                cases.append(case_)
    return cases


def comparison():
    """The comparison of results: that of the suites where they are, else Canonical XML."""
    file = os.path.join(SUITES, "conformance", "tools", "compare.py")
    if os.path.exists(file):
        spec = importlib.util.spec_from_file_location("compare", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    from xml.etree.ElementTree import canonicalize

    class Canonical:
        @staticmethod
        def equal(mode, expected, actual, generated_ids=False):
            return canonicalize(expected.decode()) == canonicalize(actual.decode()), "they differ"
    return Canonical


ROUTES = [
    ("early value", "//m:buyStocks/order[1]/symbol = 'IBM'"),
    ("early path", "/s:Envelope/s:Body/m:buyStocks/order[1]/symbol = 'IBM'"),
    ("early existence", "boolean(//m:buyStocks)"),
    ("any of all, first", "//symbol = 'IBM'"),
    ("none of all", "//symbol = 'MSFT'"),
    ("last of all", "(//order)[last()]/symbol = 'IBM'"),
    ("count", "count(//order) > 3"),
]


# Measuring.

def measure(peers, case, phases, args):
    """{engine: {phase: ns}} of one case, or a reason instead of the figures."""
    figures, results = {}, {}
    for peer in peers:
        figures[peer.name] = {}
        if peer.ask(*case.load) is None:
            figures[peer.name]["why"] = peer.why
    if case.load[0] == "load":
        with tempfile.TemporaryDirectory() as folder:
            for peer in peers:
                file = os.path.join(folder, peer.name)
                if "why" in figures[peer.name]:
                    continue
                if peer.ask("write", file) is None:
                    figures[peer.name]["why"] = peer.why
                else:
                    with open(file, "rb") as out:
                        results[peer.name] = out.read()
        compare = comparison()
        reference = None
        if case.expected:
            with open(case.expected, "rb") as file:
                reference = file.read()
        elif peers[0].name in results:
            reference = results[peers[0].name]
        for name, result in results.items():
            masked = getattr(case, "masked", False)
            equal, why = compare.equal(case.compare, reference, result, generated_ids=masked)
            if not equal:
                figures[name]["why"] = "another result"
                figures[name]["difference"] = why
    for phase in phases:
        for peer in peers:
            if peer.name in ("saxon", "xalan") and "why" not in figures[peer.name]:
                peer.ask("time", phase, args.warm)
        for _ in range(args.rounds):
            for peer in peers:
                mine = figures[peer.name]
                if "why" in mine:
                    continue
                answer = peer.ask("time", phase, args.ms)
                if answer:
                    mine[phase] = min(mine.get(phase, math.inf), float(answer[0]))
    return figures


def instructions(command, load, phase):
    """Instructions of one call, as the difference between two runs."""
    counts = []
    for times in (2, 6):
        lines = "\t".join(load) + f"\nloop\t{phase}\t{times}\n"
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command], input=lines,
                              capture_output=True, text=True)
        found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
        if not found or "failed" in done.stdout:
            return None
        counts.append(int(found.group(1)))
    return (counts[1] - counts[0]) / 4


def shown(ns):
    if ns is None:
        return "–"
    return f"{ns / 1e3:.1f}" if ns < 1e6 else f"{ns / 1e3:,.0f}"


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def table(title, rows, phases, engines, everything):
    ours, others = engines[0], engines[1:]
    for phase in phases:
        print(f"\n### {title}: {phase}\n")
        counted = [e for e in (ours, "libxslt") if any("instructions" in row[1].get(e, {}) for row in rows)]
        head = ["case", f"{ours} µs", *(f"{e} µs" for e in others), *(f"{e} / {ours}" for e in others),
                *(f"{e} instructions" for e in counted)]
        print("| " + " | ".join(head) + " |")
        print("|---|" + "---:|" * (len(head) - 1))
        ratios = {e: [] for e in others}
        for name, figures in rows:
            mine = figures[ours].get(phase)
            cells = [name, shown(mine) if mine else figures[ours].get("why", "–")]
            cells += [shown(figures[e].get(phase)) if "why" not in figures[e] else figures[e]["why"][:40] for e in others]
            for e in others:
                theirs = figures[e].get(phase)
                if mine and theirs:
                    ratios[e].append(theirs / mine)
                    cells.append(f"{theirs / mine:.1f}")
                else:
                    cells.append("–")
            cells += [f"{figures[e].get('instructions', {}).get(phase) or math.nan:,.0f}" for e in counted]
            print("| " + " | ".join(cells) + " |")
        for e in others:
            if ratios[e]:
                slower = sum(r < 1 for r in ratios[e])
                print(f"\n{e} / {ours}: geometric mean **{mean(ratios[e]):.2f}** over {len(ratios[e])} cases, "
                      f"least {min(ratios[e]):.2f}, {slower} below 1")
        everything.append({"title": title, "phase": phase, "rows": [{"case": n, **f} for n, f in rows]})
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["orders", "xsltmark", "xpath", "parse"])
    parser.add_argument("--engines", default="busbar,libxslt,saxon,xalan")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ms", type=int, default=40)
    parser.add_argument("--warm", type=int, default=1500)
    parser.add_argument("--phases", default="run,whole")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--json")
    args = parser.parse_args()
    os.makedirs(CACHE, exist_ok=True)
    engines = args.engines.split(",")
    commands = {e: BUILD[e]() for e in engines}
    peers = [Peer(e, commands[e], args.core) for e in engines]
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        for what in args.what:
            if what == "parse":
                parse_table(peers, folder, args, everything)
                continue
            if what == "versions":
                versions_table(commands["busbar"], folder, args, everything)
                continue
            if what == "xpath":
                xpath_table(peers, folder, args, everything)
                continue
            cases = order_cases(folder) if what == "orders" else suite_cases(what)
            phases = args.phases.split(",")
            rows = []
            for case in cases:
                if args.only not in case.name:
                    continue
                figures = measure(peers, case, phases, args)
                if args.instructions:
                    for e in ("busbar", "libxslt"):
                        if e in commands and "why" not in figures[e]:
                            counts = {p: instructions(commands[e], case.load, p) for p in phases}
                            figures[e]["instructions"] = counts
                rows.append((case.name, figures))
                note = ", ".join(f"{e} {shown(figures[e].get(phases[0]))}" for e in engines)
                print(f"{what} {case.name}: {note}", file=sys.stderr)
            table({"orders": "Order messages", "xsltmark": "XSLTMark", "docbook": "DocBook"}.get(what, what), rows, phases,
                  engines, everything)
    for peer in peers:
        peer.stop()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(everything, out, indent=1)


def versions_table(command, folder, args, everything):
    """What the version of a stylesheet costs our engine, in instructions per call of the transformation alone."""
    versions = ["1.0", "2.0", "3.0"]
    print("\n### Versions (instructions of run)\n")
    print("| stylesheet, message | " + " | ".join(versions) + " | 2.0 / 1.0 | 3.0 / 1.0 |")
    print("|---|" + "---:|" * (len(versions) + 2))
    rows = []
    for case in order_cases(folder):
        if args.only not in case.name:
            continue
        _, sheet, message = case.load
        with open(sheet, encoding="utf-8") as file:
            text = file.read()
        counts = []
        for version in versions:
            written, changed = re.subn(r'(<xsl:stylesheet[^>]*?) version="[0-9.]+"', rf'\1 version="{version}"', text, count=1)
            assert changed == 1, sheet
            other = os.path.join(folder, f"{version}-{os.path.basename(sheet)}")
            with open(other, "w", encoding="utf-8") as out:
                out.write(written)
            counts.append(instructions(command, ("load", other, message), "run"))
        rows.append({"case": case.name, "instructions": dict(zip(versions, counts))})
        shown_counts = " | ".join(f"{count:,.0f}" for count in counts)
        print(f"| {case.name} | {shown_counts} | {counts[1] / counts[0]:.2f} | {counts[2] / counts[0]:.2f} |", flush=True)
    everything.append({"title": "versions", "rows": rows})


def xpath_table(peers, folder, args, everything):
    """Routing expressions: ours while the message is read and on its tree, the others on the tree."""
    rows = []
    who = [p for p in peers if p.name != "xalan"]
    for size in ("1k", "1m"):
        file = os.path.join(folder, f"{size}-route.xml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(order_message(SIZES[size], False))
        for name, source in ROUTES:
            if args.only not in name:
                continue
            figures = {}
            for peer in who:
                loaded = peer.ask("xpath", source, file) is not None
                if loaded and peer.name == "saxon":
                    peer.ask("time", "tree", args.warm // 3)
                for phase in (["stream", "tree"] if peer.name == "busbar" else ["tree"]):
                    for _ in range(args.rounds if loaded else 0):
                        answer = peer.ask("time", phase, args.ms)
                        if answer:
                            key = (peer.name, phase)
                            figures[key] = min(figures.get(key, math.inf), float(answer[0]))
            rows.append((size, name, source, figures))
    columns = [("busbar", "stream"), *((p.name, "tree") for p in who)]
    print("\n### Routing expressions (µs; stream includes reading the message up to the decision)\n")
    print("| message | expression | " + " | ".join(f"{e} {p}" for e, p in columns) + " |")
    print("|---|---|" + "---:|" * len(columns))
    for size, name, source, figures in rows:
        cells = [f"{figures[c] / 1e3:.2f}" if c in figures else "–" for c in columns]
        print(f"| {size} | {name}: `{source.replace('|', chr(92) + '|')}` | " + " | ".join(cells) + " |")
    everything.append({"title": "xpath", "rows": [
        {"size": s, "name": n, "source": x, "ns": {" ".join(k): v for k, v in f.items()}} for s, n, x, f in rows]})
    sys.stdout.flush()


def parse_table(peers, folder, args, everything):
    """Tokenizing and tree building, in MB/s."""
    names = {p.name: p for p in peers}
    columns = [("busbar", "tokens"), ("busbar", "quick"), ("busbar", "parse"), ("busbar", "fresh"), ("libxslt", "parse"),
               ("saxon", "parse"), ("xalan", "parse"), ("busbar", "serialize")]
    columns = [c for c in columns if c[0] in names]
    titles = {("busbar", "tokens"): "tokens", ("busbar", "quick"): "quick-xml tokens",
              ("busbar", "parse"): "tree (reused)", ("busbar", "fresh"): "tree (new)",
              ("libxslt", "parse"): "libxml2 tree", ("saxon", "parse"): "Saxon tree",
              ("xalan", "parse"): "Java DOM", ("busbar", "serialize"): "write"}
    print("\n### Tokenizing and tree building (MB/s)\n")
    print("| message | " + " | ".join(titles[c] for c in columns) + " | tokens / quick-xml | tree / libxml2 |")
    print("|---|" + "---:|" * (len(columns) + 2))
    sheet = os.path.join(HERE, "sheets", "foreach.xsl")
    for size, count in SIZES.items():
        for kind in ("orders", "mixed"):
            file = os.path.join(folder, f"{size}-{kind}.parse.xml")
            text = order_message(count, True) if kind == "orders" else mixed_message(count)
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            best = {}
            for name in {c[0] for c in columns}:
                names[name].ask("load", sheet, file)
            for _ in range(args.rounds):
                for name, phase in columns:
                    if (name, phase) not in best and name in ("saxon", "xalan"):
                        names[name].ask("time", phase, args.warm)
                    answer = names[name].ask("time", phase, args.ms)
                    if answer:
                        best[name, phase] = min(best.get((name, phase), math.inf), float(answer[0]))
            bytes_ = os.path.getsize(file)
            cells = [f"{bytes_ * 1e3 / best[c]:.0f}" if c in best else "–" for c in columns]

            def ratio(a, b):
                return f"{best[b] / best[a]:.1f}" if a in best and b in best else "–"
            cells += [ratio(("busbar", "tokens"), ("busbar", "quick")), ratio(("busbar", "parse"), ("libxslt", "parse"))]
            print(f"| {size} {kind} | " + " | ".join(cells) + " |")
            everything.append({"title": "parse", "size": size, "kind": kind, "bytes": bytes_,
                               "ns": {" ".join(k): v for k, v in best.items()}})
    sys.stdout.flush()


def mixed_message(size):
    """Orders with attributes, namespaces, references and indentation."""
    text = ['<?xml version="1.0" encoding="UTF-8"?>\n'
            '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">\n  <soapenv:Body>\n'
            '    <ord:placeOrder xmlns:ord="http://services.samples/orders" priority="normal">\n']
    length, at = len(text[0]), 0
    while at == 0 or length + 120 < size:
        one = (f'      <ord:order id="{at}" currency="EUR">\n        <ord:symbol>SYM{at}</ord:symbol>\n'
               f'        <ord:quantity>{at % 100}</ord:quantity>\n        <ord:price>{at * 7 % 1000}.25</ord:price>\n'
               f'        <ord:note>Deliver to &quot;Smith &amp; Sons&quot; before noon</ord:note>\n      </ord:order>\n')
        text.append(one)
        length, at = length + len(one), at + 1
    return "".join(text) + "    </ord:placeOrder>\n  </soapenv:Body>\n</soapenv:Envelope>\n"


if __name__ == "__main__":
    main()
