#!/usr/bin/env python3
"""CPU per request of Busbar beside another engine that runs the same Synapse configuration: bench/peers.xml.

    cargo build --release && bench/peers.py [--peer 'start.sh {config} {port} {dir}'] [--only Xslt,Split] [--write docs/performance.md]

--peer is the command that runs a Synapse configuration in the foreground on 127.0.0.1:{port}, with {dir} for its own files; the
default is ~/.cache/busbar-oracle/start.sh, the engine of WSO2 Micro Integrator as a plain Java program. JOPTS is set so that its
Java compiles with all it has, as a server's would.

The peer is warmed up on each job (--warm seconds, on both cores), then both engines are pinned to core 0 and take turns; the backend
(`busbar backend`) and wrk share core 1; wrk has 32 connections, fewer for jobs that the peer takes long for. CPU is user plus system time of the process per request, that of Java's
compiler and collector included; the smallest of the rounds counts. The answers of both are compared before anything is timed.
--write puts what is printed into a document, between its markers.
"""
import argparse, os, pathlib, re, shlex, subprocess, sys, tempfile, time
import xml.etree.ElementTree as tree

from common import HEADERS, ROOT, TARGET, Machines, ask, cost, cpu, free_port, load, need, resident, script, table, wait_for, write

JOB = re.compile(r"<!-- (.+?) \| (.+?) \| (.+?) \| (.+?) -->\s*<proxy name=\"(\w+)\"")
ORACLE = os.path.expanduser("~/.cache/busbar-oracle/start.sh")


class Job:
    """A proxy with a message."""

    def __init__(self, label, proxy, message, part, budget, work):
        size = message.rsplit("-", 1)[1]
        self.name = f"{proxy} {size}"
        self.label = f"{label}, {size.upper().replace('K', ' KB')}" if size.endswith("k") else label
        self.path, self.part, self.budget = f"/services/{proxy}", part, budget
        action = "urn:getQuotes" if message.startswith("quotes") else "urn:buyStocks"
        self.headers = {**HEADERS, "SOAPAction": f'"{action}"'}
        file = work / "messages" / f"{message}.xml"
        self.body, self.lua = file.read_bytes(), script(work, message, file, self.headers)
        self.ours, self.theirs = [], []
        self.connections = 32

    def answer(self, port):
        status, body = ask(port, self.path, self.body, self.headers)
        if status != 200 or self.part.encode() not in body:
            sys.exit(f"{self.name} on port {port}: {status} {body.decode(errors='replace')[:1500]}")
        return body


def jobs(work, only):
    wanted = [word.lower() for word in only.split(",") if word]
    found = []
    for label, messages, part, budgets, proxy in JOB.findall((ROOT / "bench" / "peers.xml").read_text()):
        budgets = [float(budget) for budget in budgets.split()]
        for number, message in enumerate(messages.split()):
            found.append(Job(label, proxy, message, part, budgets[min(number, len(budgets) - 1)], work))
    return [job for job in found if not wanted or any(word in job.name.lower() for word in wanted)]


def said(body):
    """What the payload says, whatever prefixes and order of parts."""
    def of(element):
        parts = sorted((of(child) for child in element), key=repr)
        return element.tag, sorted(element.attrib.items()), (element.text or "").strip(), parts
    root = tree.fromstring(body)
    inside = root.find("{http://schemas.xmlsoap.org/soap/envelope/}Body")
    return of(root if inside is None else inside)


def java(process):
    """The process that works: the command's own, or the one it started."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return max([process.pid, *map(int, children)], key=resident)


class Peer:
    """The other engine, as `cost` wants it."""

    def __init__(self, machines, command, config, port, work):
        words = shlex.split(command.format(config=config, port=port, dir=work))
        environment = {"JOPTS": "-XX:TieredStopAtLevel=4 -Xms512m -Xmx1g -XX:-UsePerfData", **os.environ}
        self.process = machines.start(None, *words, env=environment)
        wait_for(port, 120)
        self.pid = java(self.process)

    def pin(self, cores):
        subprocess.run(["taskset", "-acp", cores, str(self.pid)], check=True, stdout=subprocess.DEVNULL)


def ready(job, port):
    """The peer listens before its proxies are there."""
    deadline = time.monotonic() + 60
    while True:
        try:
            if ask(port, job.path, job.body, job.headers)[0] == 200 or time.monotonic() > deadline:
                return
        except OSError:
            pass
        time.sleep(0.5)


def report(all_jobs):
    rows = []
    for job in all_jobs:
        ours, theirs = min(job.ours), min(job.theirs)
        ratio = theirs / ours
        rows.append([job.label, f"{ours:.1f}", f"{theirs:,.1f}", f"{ratio:.1f}", f"{job.budget:g}", "yes" if ratio >= job.budget else "**no**"])
    text = table(["job", "Busbar CPU µs:", "peer CPU µs:", "times less:", "budget:", "reached"], rows)
    named = {job.name: job for job in all_jobs}
    if {"Direct 1k", "Split 11"} <= named.keys():
        direct, split = named["Direct 1k"], named["Split 11"]
        text += (f"\n\nSplit eleven ways and aggregated costs Busbar {min(split.ours) / min(direct.ours):.1f} times its direct call "
                 f"(budget: 14), the peer {min(split.theirs) / min(direct.theirs):.1f} times its own.")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=ORACLE + " {config} {port} {dir}")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--warm", type=int, default=20, help="seconds of load on each job of the peer")
    parser.add_argument("--only", default="", help="parts of names, with commas")
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    options = parser.parse_args()
    need("wrk", "taskset")
    work = pathlib.Path(tempfile.mkdtemp())
    subprocess.run([options.busbar, "bench", "messages", "--dir", work / "messages"], check=True, stdout=subprocess.DEVNULL)
    backend, port, other = free_port(), free_port(), free_port()
    config = work / "synapse.xml"
    config.write_text((ROOT / "bench" / "peers.xml").read_text().replace("@BACKEND@", str(backend)))
    todo = jobs(work, options.only)
    with Machines(work) as machines:
        machines.start(1, options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--workers", "1")
        bus = machines.start(0, options.busbar, "run", config, "--strict", "--http", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--workers", "1")
        wait_for(backend)
        wait_for(port)
        peer = Peer(machines, options.peer, config, other, work / "peer")
        ready(todo[0], other)
        for job in todo:
            if said(job.answer(port)) != said(job.answer(other)):
                sys.exit(f"{job.name}: the answers differ:\n{job.answer(port)[:1500]}\n{job.answer(other)[:1500]}")
        for job in todo:
            before = cpu(peer.pid)
            count = load(other, job.path, job.lua, options.warm)
            # What is under way at the end is paid for and not counted: it has to be little beside what is counted.
            job.connections = max(2, min(32, count * options.seconds // options.warm // 50))
            print(f"{job.name}: warm after {count} requests, {(cpu(peer.pid) - before) * 1e6 / max(count, 1):.0f} µs each; "
                  f"goes on with {job.connections} connections", file=sys.stderr, flush=True)
        peer.pin("0")
        for _ in range(options.rounds):
            for job in todo:
                job.ours.append(cost(bus, port, job.path, job.lua, options.seconds, connections=job.connections)[0])
                job.theirs.append(cost(peer, other, job.path, job.lua, options.seconds, connections=job.connections)[0])
        text = report(todo)
    if options.write:
        write(options.write, "peers", text)
    print(text)


if __name__ == "__main__":
    main()
