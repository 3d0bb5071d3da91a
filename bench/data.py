#!/usr/bin/env python3
"""Data services: CPU per request of Busbar beside two small Java programs that do the same over JDBC with a pool.

    cargo build --release && bench/data.py [--seconds 3] [--rounds 3] [--write docs/performance.md]

The database is a PostgreSQL of its own (tests/services/postgresql) with a table of 1,000 rows; a request is a GET of ten of them as XML. The Java peers
are bench/data/DataPeer.java, the least that does it (Jetty, HikariCP, the JDBC driver, Woodstox), and bench/data/CamelPeer.java, a route of the integration
framework that is the peer elsewhere (Apache Camel with its SQL component, HikariCP, Woodstox); all from Maven Central (fetched once into ~/.cache/busbar-data).
After that a client takes an answer of a million rows slowly: how much memory Busbar needs for that.
Beside both runs bench/data/floor.c, which does nothing but the system calls: it receives a request, sends the query, receives the rows and sends an answer
that it has ready. What the kernel takes for these nobody can save. All ask the database without TLS (--tls: Busbar and the peer with it, as both do by
themselves where the server has it).
All have 6 connections and are asked by wrk with 32. The peers are warmed up, then all are pinned to core 0 and take turns; wrk and the database have core 1.
CPU is user plus system time of the process per request; the smallest of the rounds counts. The answers are compared before anything is timed.
What one dblookup costs beside the driver alone: cargo test --release -p busbar-dataservices --test speed -- --ignored --nocapture
"""
import argparse, http.client, os, pathlib, re, subprocess, sys, tempfile, time, xml.etree.ElementTree as tree

from common import ROOT, TARGET, Machines, cost, cpu, free_port, load, need, table, wait_for, write

LIBRARIES = pathlib.Path.home() / ".cache/busbar-data"
PATH = "/services/Items/page/400"
CONNECTIONS = 6
# What a row of the table is called, and the program.
PEERS = {"Jetty, HikariCP, JDBC": "DataPeer", "Apache Camel, HikariCP, JDBC": "CamelPeer"}

SOURCE = """<datasource><name>Shop</name><definition type="RDBMS"><configuration><driverClassName>org.postgresql.Driver</driverClassName>
<url>jdbc:postgresql://127.0.0.1:@PORT@/bus?sslmode=@TLS@</url><username>bus</username><password>secret</password><maxActive>@MOST@</maxActive></configuration></definition></datasource>"""
SERVICE = """<data name="Items" serviceNamespace="http://shop.example/items"><config id="db"><property name="carbon_datasource_name">Shop</property></config>
<query id="page" useConfig="db"><sql>SELECT id, name, price, stock FROM items WHERE id &gt; :from ORDER BY id LIMIT 10</sql><param name="from" sqlType="INTEGER"/>
<result element="items" rowName="item"><element name="id" column="id" xsdType="integer"/><element name="name" column="name"/>
<element name="price" column="price" xsdType="decimal"/><element name="stock" column="stock" xsdType="integer"/></result></query>
<query id="million" useConfig="db"><sql>SELECT n AS id, 'item number ' || n AS name, n * 1.25 AS price, n % 50 AS stock FROM generate_series(1, 1000000) n</sql>
<result element="items" rowName="item"><element name="id" column="id" xsdType="integer"/><element name="name" column="name"/>
<element name="price" column="price" xsdType="decimal"/><element name="stock" column="stock" xsdType="integer"/></result></query>
<resource path="million" method="GET"><call-query href="million"/></resource>
<resource path="page/{from}" method="GET"><call-query href="page"><with-param name="from" query-param="from"/></call-query></resource></data>"""
TABLE = """create table items (id integer primary key, name varchar(40), price numeric(10,2), stock integer);
insert into items select n, 'item number ' || n, n * 1.25, n % 50 from generate_series(1, 1000) n; analyze items"""


def get(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", PATH)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        sys.exit(f"port {port}: {answer.status} {body[:1500]}")
    return tree.canonicalize(body.decode())


def peak(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def slowly(bus, port, rate):
    """Takes a million rows, so many bytes a second: bytes, seconds, megabytes of memory more than before."""
    before, begin, count, rows = peak(bus.pid), time.monotonic(), 0, 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/services/Items/million")
    answer = connection.getresponse()
    end = b""
    while part := answer.read(1 << 16):
        count += len(part)
        rows += (end[-6:] + part).count(b"</item>")
        end = (end + part)[-8:]
        time.sleep(max(0.0, begin + count / rate - time.monotonic()))
    if rows != 1_000_000 or not end.endswith(b"</items>"):
        sys.exit(f"{rows} rows, and the end is {end!r}")
    return count, time.monotonic() - begin, peak(bus.pid) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=20, help="seconds of load on each peer before it is measured")
    parser.add_argument("--write", metavar="DOCUMENT")
    parser.add_argument("--tls", action="store_true", help="ask the database over TLS")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    options = parser.parse_args()
    need("wrk", "taskset", "psql", "java", "javac", "mvn", "cc")
    if not list(LIBRARIES.glob("lib/camel-sql-*.jar")):
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARIES}/lib"], cwd=ROOT / "bench/data", check=True)
    sources = [ROOT / f"bench/data/{peer}.java" for peer in PEERS.values()]
    subprocess.run(["javac", "-cp", f"{LIBRARIES}/lib/*", "-d", LIBRARIES, *sources], check=True)
    work = pathlib.Path(tempfile.mkdtemp())
    os.chmod(work, 0o755)
    database, port, least = free_port(), free_port(), free_port()
    tls = "require" if options.tls else "disable"
    subprocess.run(["cc", "-O2", "-Wno-unused-result", "-o", work / "floor", ROOT / "bench/data/floor.c"], check=True)
    for name, text in [("data-sources/Shop.xml", SOURCE), ("data-services/Items.dbs", SERVICE)]:
        path = work / "config" / name
        path.parent.mkdir(parents=True)
        path.write_text(text.replace("@PORT@", str(database)).replace("@MOST@", str(CONNECTIONS)).replace("@TLS@", tls))
    lua = work / "get.lua"
    lua.write_text('wrk.method = "GET"\n')
    script = [ROOT / "tests/services/postgresql"]
    subprocess.run(["taskset", "-c", "1", *script, "start", work / "database", str(database)], check=True)
    try:
        login = {**os.environ, "PGPASSWORD": "secret"}
        subprocess.run(["psql", "-q", "-h", "127.0.0.1", "-p", str(database), "-U", "bus", "-d", "bus", "-c", TABLE], env=login, check=True)
        # The floor logs in without a password.
        rules = work / "database/data/pg_hba.conf"
        rules.write_text("host all all 127.0.0.1/32 trust\n" + rules.read_text())
        subprocess.run(["psql", "-q", "-h", "127.0.0.1", "-p", str(database), "-U", "bus", "-d", "bus", "-Atc", "select pg_reload_conf()"], env=login, check=True, stdout=subprocess.DEVNULL)
        with Machines(work) as machines:
            bus = machines.start(0, options.busbar, "run", work / "config", "--strict", "--http", f"127.0.0.1:{port}", "--admin", "127.0.0.1:0", "--workers", "1")
            url = f"jdbc:postgresql://127.0.0.1:{database}/bus?sslmode={tls}"
            floor = machines.start(0, work / "floor", least, database, CONNECTIONS)
            systems = {"system calls alone": (floor, least), "Busbar": (bus, port)}
            for name, program in PEERS.items():
                heap = ["-Xms256m", "-Xmx1g", "-cp", f"{LIBRARIES}:{LIBRARIES}/lib/*"]
                systems[name] = (machines.start(None, "java", *heap, program, other := free_port(), url, CONNECTIONS), other)
            wait_for(port)
            wait_for(least)
            for name in PEERS:
                peer, other = systems[name]
                wait_for(other, 60)
                if get(port) != get(other):
                    sys.exit(f"the answers differ:\n{get(port)}\n{get(other)}")
                count = load(other, PATH, lua, options.warm)
                print(f"{name}: warm after {count} requests", file=sys.stderr)
                subprocess.run(["taskset", "-acp", "0", str(peer.pid)], check=True, stdout=subprocess.DEVNULL)
            turns = {name: [] for name in systems}
            for _ in range(options.rounds):
                for name, (process, at) in systems.items():
                    turns[name].append(cost(process, at, PATH, lua, options.seconds))
            size, seconds, more = slowly(bus, port, 10 << 20)
    finally:
        subprocess.run([*script, "stop", work / "database"])
    rows = [(name, *min(costs)) for name, costs in turns.items()]
    text = table(["engine", "CPU µs:", "requests a second:"], [[name, f"{micros:.1f}", f"{rate:,.0f}"] for name, micros, rate in rows])
    (_, alone, _), (_, ours, _), *theirs = rows
    text += "\n"
    for name, micros, _ in theirs:
        text += f"\n{name}: {micros / ours:.1f} times the CPU of Busbar (budget: 5), {micros / alone:.1f} times that of the system calls alone."
    text += f"\nBusbar takes {ours / alone:.1f} times the latter.\n\nA million rows ({size / 1e6:.0f} MB) to a client that takes 10 MB a second: {seconds:.0f} s, {more:.1f} MB of memory more than before."
    if options.write:
        write(options.write, "data", text)
    print(text)


if __name__ == "__main__":
    main()
