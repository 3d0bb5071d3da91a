#!/usr/bin/env python3
"""WS-Security: CPU per request of the secure proxy of the round beside a Java server that does the same with WSS4J.

    cargo build --release && bench/secured.py [--rounds 3] [--sizes 1k 100k] [--write docs/performance.md]

Both take requests over https, decrypt and verify them, ask a plain backend, and answer with a timestamp, the request's signature confirmed, signed, and
encrypted for whoever signed the request. The Java peer is bench/secured/SecuredPeer.java: Jetty and WSS4J (DOM, as Rampart and CXF use it), from Maven Central
(fetched once into ~/.cache/busbar-secured). Unlike Busbar it does not refuse replays. No message is sent twice to Busbar, since it is good once.
The peer is warmed up, then both are pinned to core 0 and take turns; client and backend have core 1. CPU is user plus system time of the process per right answer; the
smallest of the rounds counts. An answer is right if it has status 200 and a signature.
"""
import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile

from common import ROOT, TARGET, Machines, free_port, need, table, wait_for, write

LIBRARIES = pathlib.Path.home() / ".cache/busbar-secured"
PATH = "/services/SecureProxy"


def stores(keys):
    """The keys as Java reads them."""
    def openssl(*words):
        subprocess.run(["openssl", "pkcs12", "-export", *words, "-passout", "pass:secret"], check=True)
    openssl("-in", keys / "bus.pem", "-name", "bus", "-out", keys / "bus.p12")
    openssl("-in", keys / "tls.crt", "-inkey", keys / "tls.key", "-name", "tls", "-out", keys / "tls.p12")
    subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "client", "-file", keys / "client.crt", "-keystore", keys / "trust.p12",
                    "-storetype", "PKCS12", "-storepass", "secret"], check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", nargs="*", default=["1k", "100k"])
    parser.add_argument("--count", type=int, default=1000, help="messages of a round")
    parser.add_argument("--warm", type=int, default=5000, help="requests of each size to the peer before it is measured")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    options = parser.parse_args()
    need("taskset", "java", "javac", "keytool", "mvn", "openssl")
    if not list(LIBRARIES.glob("lib/*.jar")):
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}/lib"], cwd=ROOT / "bench/secured", check=True)
    subprocess.run(["javac", "-cp", f"{LIBRARIES}/lib/*", "-d", LIBRARIES, ROOT / "bench/secured/SecuredPeer.java"], check=True)
    work = pathlib.Path(tempfile.mkdtemp())
    keys, project = work / "keys", work / "round"
    subprocess.run([options.busbar, "demo", "--keys", keys], check=True, stdout=subprocess.DEVNULL)
    stores(keys)
    backend, http, bus_port, peer_port = free_port(), free_port(), free_port(), free_port()
    shutil.copytree(ROOT / "examples/round", project)
    for endpoint in (project / "endpoints").glob("*.xml"):
        endpoint.write_text(endpoint.read_text().replace("localhost:9000", f"127.0.0.1:{backend}"))

    def secured(size, count):
        """Messages that nobody has seen, and what the private operations of one cost alone."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=work))
        out = subprocess.run(["taskset", "-c", "1", options.busbar, "bench", "secured", "--keys", keys, "--round", project, "--dir", folder, "--size", size, "--count", str(count)],
                             check=True, capture_output=True, text=True).stdout
        return folder, float(out.split()[0])

    def load(process, port, folder, *more):
        out = subprocess.run(["taskset", "-c", "1", options.busbar, "bench", "load", f"https://127.0.0.1:{port}{PATH}", "-c", str(options.clients), "-f", folder, "-H", "Content-Type: text/xml",
                              "-H", 'SOAPAction: "urn:buyStocks"', "--expect", "contains:SignatureConfirmation", "--process", f"it={process.pid}", "--json", *more], capture_output=True, text=True)
        if out.returncode:
            sys.exit(f"port {port}: {out.stdout[-1500:]}{out.stderr[-1500:]}")
        return json.loads(out.stdout)

    def cost(result):
        return result["processes"][0]["cpu_us_per_request"], result["rate"]

    with Machines(work) as machines:
        machines.start(1, options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--workers", "1")
        bus = machines.start(0, options.busbar, "run", project, "--http", f"127.0.0.1:{http}", "--https", f"127.0.0.1:{bus_port}", "--admin", "127.0.0.1:0", "--workers", "1",
                             *(word for setting in (f"security.keystore={keys}/bus.pem", f"security.truststore={keys}/client.crt", f"tls.certificate={keys}/tls.crt", f"tls.key={keys}/tls.key")
                               for word in ("--set", setting)))
        peer = machines.start(None, "java", "-Xms512m", "-Xmx2g", "-XX:-UsePerfData", "-cp", f"{LIBRARIES}:{LIBRARIES}/lib/*", "SecuredPeer", peer_port, f"127.0.0.1:{backend}", keys)
        wait_for(backend)
        wait_for(bus_port)
        wait_for(peer_port, 60)
        rows = []
        for size in options.sizes:
            warm, _ = secured(size, 200)
            load(peer, peer_port, warm, "-n", str(options.warm), "--timeout", "120")
            subprocess.run(["taskset", "-acp", "0", str(peer.pid)], check=True, stdout=subprocess.DEVNULL)
            load(bus, bus_port, warm, "-n", "200")
            ours, theirs, bare = [], [], []
            for _ in range(options.rounds):
                folder, alone = secured(size, options.count)
                bare.append(alone)
                count = ("-n", str(options.count))
                ours.append(cost(load(bus, bus_port, folder, *count)))
                theirs.append(cost(load(peer, peer_port, folder, *count)))
                shutil.rmtree(folder)
            subprocess.run(["taskset", "-acp", "0,1", str(peer.pid)], check=True, stdout=subprocess.DEVNULL)
            (a, least), (b, other) = min(ours), min(theirs)
            rows.append([size, f"{min(bare):.0f}", f"{a:.0f}", f"{least:,.0f}", f"{b:.0f}", f"{other:,.0f}", f"{b / a:.1f}"])
    text = table(["size", "two private RSA operations, µs:", "Busbar, CPU µs:", "requests a second:", "WSS4J, CPU µs:", "requests a second:", "ratio of CPU:"], rows)
    if options.write:
        write(options.write, "secured", text)
    print(text)


if __name__ == "__main__":
    main()
