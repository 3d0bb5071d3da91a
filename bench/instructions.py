#!/usr/bin/env python3
"""Instructions in user space per request: the bus under callgrind, of which only the steady state is counted.

    cargo build --profile quick -p busbar && bench/instructions.py [--size 1k] [--top 40] [Direct Header Body]

Instruction counts hardly depend on what else the machine does, so they rank changes where times cannot. The routes are
those of bench/compare.py, with the same client. --top N lists the N functions that cost most: instructions per request
with what was inlined, and calls per request. Needs valgrind and wrk (apt-get install valgrind wrk), and a build with symbols.
"""
import argparse, collections, os, pathlib, re, shutil, socket, subprocess, sys, tempfile, time

import compare


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def profile(path):
    """Instructions by function and calls by function, of a callgrind profile."""
    names, own, calls = {}, collections.Counter(), collections.Counter()

    def name(text):
        number, _, rest = text.partition(" ")
        if rest:
            names[number] = rest
        return names.get(number, number)

    function = callee = None
    is_call = False
    for line in path.open():
        if line.startswith("fn="):
            function = name(line[3:].strip())
        elif line.startswith("cfn="):
            callee = name(line[4:].strip())
        elif line.startswith("calls="):
            calls[callee] += int(line[6:].split()[0])
            is_call = True
        elif line[0].isdigit() or line[0] in "+-*":
            if not is_call:
                own[function] += int(line.split()[1])
            is_call = False
    return own, calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("routes", nargs="*", default=["Direct", "Body"])
    parser.add_argument("--size", default="1k")
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--top", type=int, default=0)
    parser.add_argument("--busbar", default=str(compare.TARGET / "quick" / "busbar"))
    options = parser.parse_args()
    for tool in ("valgrind", "callgrind_control", "wrk"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install valgrind wrk")
    work = pathlib.Path(tempfile.mkdtemp())
    backend, bus = free_port(), free_port()
    subprocess.run([options.busbar, "bench", "messages", "--dir", work], check=True, stdout=subprocess.DEVNULL)
    body = work / f"order-{options.size}.xml"
    (work / "bus.xml").write_text(compare.CONFIG.format(backend=backend))
    lua = work / "post.lua"
    lua.write_text(compare.LUA.format(body=body))
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    machines = []
    try:
        machines.append(subprocess.Popen(
            [options.busbar, "backend", "--listen", f"127.0.0.1:{backend}", "--mode", "echo", "--workers", "1"], **quiet))
        machines.append(subprocess.Popen(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/profile", options.busbar, "run", work / "bus.xml",
             "--http", f"127.0.0.1:{bus}", "--admin", "127.0.0.1:0", "--workers", "1"], **quiet))
        valgrind = str(machines[-1].pid)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", bus)).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    sys.exit("the bus does not start")
                time.sleep(0.2)
        for number, route in enumerate(options.routes, 1):
            path = f"/services/{route}"
            compare.exact(bus, path, body.read_bytes())

            def load(seconds):
                out = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", lua, f"http://127.0.0.1:{bus}{path}"],
                                     capture_output=True, text=True, check=True).stdout
                if "Non-2xx" in out or "Socket errors" in out:
                    sys.exit(out)
                return int(re.search(r"(\d+) requests in", out)[1])

            load(1)
            subprocess.run(["callgrind_control", "--zero", valgrind], check=True, **quiet)
            requests = load(options.seconds)
            subprocess.run(["callgrind_control", f"--dump={route}", valgrind], check=True, **quiet)
            own, calls = profile(work / f"profile.{number}")
            print(f"{route} {options.size}: {sum(own.values()) / requests:,.0f} instructions a request ({requests} requests)", flush=True)
            for function, count in own.most_common(options.top):
                print(f"{count / requests:9.1f} {calls[function] / requests:7.2f}  {function[:170]}")
    finally:
        for process in machines:
            process.terminate()
        for process in machines:
            process.wait(20)
        print(f"profiles: {work}", file=sys.stderr)


if __name__ == "__main__":
    main()
