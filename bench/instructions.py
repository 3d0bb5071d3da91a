#!/usr/bin/env python3
"""Instructions in user space per request: the bus under callgrind, of which only the steady state is counted.

    cargo build --profile quick -p busbar && bench/instructions.py [--size 1k] [--top 40] [Direct Header Body]

Instruction counts hardly depend on what else the machine does, so they rank changes where times cannot. The routes are
those of bench/routes.py, with the same client. --top N lists the N functions that cost most: instructions per request
with what was inlined, and calls per request. Needs valgrind and wrk (apt-get install valgrind wrk), and a build with symbols.
"""
import argparse, pathlib, subprocess, sys, tempfile

import routes
from common import TARGET, Counted, Machines, ask, free_port, need, script, wait_for


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routes", nargs="*", default=["Direct", "Body"])
    parser.add_argument("--size", default="1k")
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--top", type=int, default=0)
    parser.add_argument("--busbar", default=str(TARGET / "quick" / "busbar"))
    options = parser.parse_args()
    need("valgrind", "wrk")
    work = pathlib.Path(tempfile.mkdtemp())
    backend, bus = free_port(), free_port()
    subprocess.run([options.busbar, "bench", "messages", "--dir", work], check=True, stdout=subprocess.DEVNULL)
    (work / "bus.xml").write_text(routes.config(backend))
    with Machines(work) as machines:
        machines.start(None, options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--mode", "echo", "--workers", "1")
        counted = Counted(machines, options.busbar, "run", work / "bus.xml", "--http", f"127.0.0.1:{bus}", "--admin", "127.0.0.1:0",
                          "--workers", "1")
        wait_for(bus, 60)
        for route in options.routes:
            path = f"/services/{route}"
            body = routes.message(work, path, options.size)
            if ask(bus, path, body.read_bytes()) != (200, routes.answer(path, body.read_bytes())):
                sys.exit(f"{path}: the answer is another one")
            own, calls, requests = counted.count(bus, path, script(work, f"post-{route}", body), options.seconds)
            print(f"{route} {options.size}: {sum(own.values()) / requests:,.0f} instructions a request ({requests} requests)", flush=True)
            for function, count in own.most_common(options.top):
                print(f"{count / requests:9.1f} {calls[function] / requests:7.2f}  {function[:170]}")
    print(f"profiles: {work}", file=sys.stderr)


if __name__ == "__main__":
    main()
