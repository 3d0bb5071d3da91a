#!/usr/bin/env python3
"""What WS-Security costs: the secure proxy of the example round (https, request verified and decrypted, answer signed and encrypted).

    cargo build --release && bench/security.py [--seconds 3] [--rounds 3] [--size 1k,10k,100k] [--write docs/performance.md]

Each call needs two operations with a private key of RSA (2048 bits): one decrypts the key of the request, one signs the answer. Their time
alone is measured beside each run (`busbar bench secured`, the quickest of 200, on the same core), and says how many calls for a second
of CPU there could be at most. So is what no call is without: the two operations with a public key, and a call over https that only relays the
same message (DirectProxy). What is shown is the median of the rounds: calls for a second of CPU of the bus, those that the two operations
alone allow, the first as part of the second; then what https and the public keys take in microseconds, and the part that would be left if
the bus did nothing else. Figures of one run belong together, those of different runs do not: the machine may be shared.

Every message is another one, made before it is sent: the bus refuses what it has seen. The bus is pinned to core 0, the backend (`busbar
backend`) and wrk share core 1. All answers have to be 200. --write puts what is printed into a document, between its markers. Needs wrk.
"""
import argparse, pathlib, shutil, statistics, subprocess, sys, tempfile, time

from common import ROOT, TARGET, Machines, cpu, free_port, need, resident, table, wait_for, write

LUA = """local all, n = {}, 0
for name in io.popen('ls "@DIR@"'):lines() do
  local f = io.open("@DIR@/" .. name, "rb"); all[#all + 1] = f:read("*a"); f:close()
end
wrk.method = "POST"
wrk.headers["Content-Type"] = "text/xml"
wrk.headers["SOAPAction"] = '"urn:buyStocks"'
wrk.headers["Host"] = "localhost"
function request()
  n = n + 1
  if n > #all then wrk.thread:stop(); n = #all end
  return wrk.format(nil, nil, nil, all[n])
end
function done(summary, latency, requests)
  io.write(string.format("answered %d bad %d\\n", summary.requests, summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
"""


def run(command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", default="1k,10k,100k")
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    options = parser.parse_args()
    need("wrk", "taskset")
    work = pathlib.Path(tempfile.mkdtemp())
    keys, rows = work / "keys", []
    backend, http, https = free_port(), free_port(), free_port()
    # The line that it prints has the settings.
    settings = run([options.busbar, "demo", "--keys", keys]).split()[3:]
    folder = work / "round"
    shutil.copytree(ROOT / "examples" / "round", folder)
    for file in (folder / "endpoints").iterdir():
        file.write_text(file.read_text().replace("localhost:9000", f"127.0.0.1:{backend}"))
    try:
        with Machines(work) as machines:
            machines.start(1, options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--workers", "1")
            bus = machines.start(0, options.busbar, "run", folder, "--strict", "--http", f"127.0.0.1:{http}", "--https", f"127.0.0.1:{https}",
                                 "--admin", "127.0.0.1:0", "--workers", "1", *settings)
            wait_for(backend)
            wait_for(https, 60)
            for size in options.size.split(","):
                figures = []
                for number in range(options.rounds):
                    messages = work / f"messages-{size}-{number}"
                    # More than a core can do: two operations take 1 ms and more.
                    count = int(options.seconds * 1200)
                    bare, public = map(float, run(["taskset", "-c", "0", options.busbar, "bench", "secured", "--keys", keys, "--round", folder,
                                                   "--dir", messages, "--size", size, "--count", count]).split())
                    lua = work / "secured.lua"
                    lua.write_text(LUA.replace("@DIR@", str(messages)))
                    def ask(service):
                        before, began = cpu(bus.pid), time.monotonic()
                        out = run(["taskset", "-c", "1", "wrk", "-t1", "-c16", f"-d{int(options.seconds)}s", "--timeout", "30s", "-s", lua,
                                   f"https://127.0.0.1:{https}/services/{service}"])
                        answered, bad = (int(word) for word in out.rsplit("answered ", 1)[1].replace("bad ", "").split()[:2])
                        if bad or not answered:
                            sys.exit(f"{size}: {out}")
                        return (cpu(bus.pid) - before) * 1e6 / answered, answered / (time.monotonic() - began)
                    each, rate = ask("SecureProxy")
                    relayed, _ = ask("DirectProxy")
                    figures.append((each, bare, bare / each, rate, relayed + public, bare / (bare + relayed + public)))
                    shutil.rmtree(messages)
                each, bare, part, rate, beside, most = (statistics.median(column) for column in zip(*figures))
                rows.append([size.upper().replace("K", " KB"), f"{1e6 / each:,.0f}", f"{1e6 / bare:,.0f}", f"{part:.0%}", f"{rate:,.0f}", f"{each:,.0f}",
                             f"{beside:,.0f}", f"{most:.0%}"])
            memory = resident(bus.pid)
    finally:
        shutil.rmtree(keys, ignore_errors=True)
    text = table(["message", "calls per CPU second:", "the two RSA operations alone:", "part of it:", "calls per second, one core:", "µs a call:",
                  "https and public keys, µs:", "part at most:"], rows)
    text += f"\n\nResident at the end: {memory:.0f} MB."
    if options.write:
        write(options.write, "security", text)
    print(text)


if __name__ == "__main__":
    main()
