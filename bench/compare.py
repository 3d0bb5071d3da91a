#!/usr/bin/env python3
"""CPU per request of the bus beside nginx and HAProxy, and of its transformations beside xsltproc.

    cargo build --release && bench/compare.py [--seconds 4] [--rounds 3] [--sizes 1k,10k,100k] [--before OTHER/busbar]

Needs nginx, haproxy, wrk, xsltproc (apt-get install nginx haproxy wrk xsltproc) and two cores. One worker of each server
is pinned to core 0; the backend (`busbar backend`, echo) and the client share core 1. The servers take turns within each
round, so that what else the machine does hits all of them; the smallest figure of the rounds counts, and only ratios within
one run mean anything. Every answer of wrk is checked for its status, and one answer of each scenario for its bytes.
"""
import argparse, pathlib, shutil, signal, subprocess, tempfile, time

from common import ROOT, TARGET, Machines, cost, exact, need, resident, script, wait_for

PORTS = dict(backend=29700, bus=29701, nginx=29702, haproxy=29703, before=29704)

CONFIG = """<definitions xmlns="http://ws.apache.org/ns/synapse">
<endpoint name="Echo"><address uri="http://127.0.0.1:{backend}/services/EchoService"/></endpoint>
<proxy name="Direct"><target endpoint="Echo"/></proxy>
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


NGINX = """daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 4096; }}
http {{ access_log off; client_body_temp_path {work}/b; proxy_temp_path {work}/p; fastcgi_temp_path {work}/f;
  uwsgi_temp_path {work}/u; scgi_temp_path {work}/s; client_max_body_size 0; keepalive_requests 100000000;
  upstream backend {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{nginx}; location / {{ proxy_pass http://backend; proxy_http_version 1.1;
    proxy_set_header Connection ""; client_body_buffer_size 1m; proxy_buffers 64 16k; proxy_buffer_size 16k;
    proxy_busy_buffers_size 64k; }} }} }}
"""

HAPROXY = """global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
  http-reuse always
listen front
  bind 127.0.0.1:{haproxy}
  server backend 127.0.0.1:{backend}
"""

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    parser.add_argument("--before", help="another build of the bus, compared in the same rounds")
    options = parser.parse_args()
    need("nginx", "haproxy", "wrk")
    work = pathlib.Path(tempfile.mkdtemp())
    messages = work / "messages"
    subprocess.run([options.busbar, "bench", "messages", "--dir", messages], check=True, stdout=subprocess.DEVNULL)
    round_ = ROOT / "examples" / "round"
    config = CONFIG
    (work / "bus.xml").write_text(config.format(backend=PORTS["backend"]))
    (work / "nginx.conf").write_text(NGINX.format(work=work, **PORTS))
    (work / "haproxy.cfg").write_text(HAPROXY.format(**PORTS))
    with Machines(work) as machines:
        machines.start(1, options.busbar, "backend", "--listen", f"127.0.0.1:{PORTS['backend']}", "--mode", "echo", "--workers", "1")
        start = lambda build, port: machines.start(0, build, "run", work / "bus.xml", "--http", f"127.0.0.1:{PORTS[port]}", "--admin", "127.0.0.1:0", "--workers", "1")
        bus = start(options.busbar, "bus")
        nginx = machines.start(0, "nginx", "-c", work / "nginx.conf", "-p", work)
        haproxy = machines.start(0, "haproxy", "-db", "-f", work / "haproxy.cfg")
        before = start(options.before, "before") if options.before else None
        for name, port in PORTS.items():
            if name != "before" or before:
                wait_for(port)
        idle = resident(bus.pid)
        runs = [("busbar direct", bus, "bus", "/services/Direct"), ("busbar by header", bus, "bus", "/services/Header"),
                ("busbar by SOAP header", bus, "bus", "/services/Soap"), ("busbar by body", bus, "bus", "/services/Body"), ("nginx", nginx, "nginx", "/services/EchoService"),
                ("haproxy", haproxy, "haproxy", "/services/EchoService")]
        if before:
            runs += [(f"before, {name[7:]}", before, "before", path) for name, _, _, path in runs[:4]]
        print("| message | server | CPU µs/request | requests/s | direct / this |\n|---|---|---:|---:|---:|")
        for size in options.sizes.split(","):
            lua = {path: script(work, f"post{path.replace('/', '-')}", message(messages, path, size)) for _, _, _, path in runs}
            best = {}
            for _ in range(options.rounds):
                for name, process, port, path in runs:
                    exact(PORTS[port], path, message(messages, path, size).read_bytes())
                    best.setdefault(name, []).append(cost(process, PORTS[port], path, lua[path], options.seconds))
            direct = min(figure for figure, _ in best["busbar direct"])
            for name, figures in best.items():
                figure, rate = min(figures)[0], max(rate for _, rate in figures)
                print(f"| {size} | {name} | {figure:.1f} | {rate:,.0f} | {direct / figure:.2f} |", flush=True)
        print(f"\nresident memory of the bus: {idle:.0f} MB idle, {resident(bus.pid):.0f} MB after the load")
    starts = []
    for _ in range(5):
        begin = time.monotonic()
        process = subprocess.Popen([options.busbar, "run", round_, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = process.stdout.readline()
        starts.append((time.monotonic() - begin) * 1000)
        memory = resident(process.pid)
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    print(f"start of the example round to its ready line: {min(starts):.0f} ms ({line.strip()}), {memory:.0f} MB")
    shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
