#!/usr/bin/env python3
"""Many WebSockets at a time: all are opened, each sends texts and must get each back, and all are closed.

    bench/websockets.py [--connections 10000] [--rounds 3] [--busbar PATH]

`sequence`: a `ws` inbound endpoint whose sequence answers (one descriptor each). `backend`: an API that passes them on to a backend that answers (two
descriptors each). If the limit of open files (`ulimit -Hn`) is too low for all in one process, the script starts as many buses as they need, and says so.
Clients have addresses of their own in 127.0.0.0/8, so that ports do not run out; each must read back what it sent. Exit status 1: something failed.
"""
import argparse, multiprocessing, os, pathlib, resource, select, socket, struct, sys, tempfile, time

from common import TARGET, Machines, free_port, resident, wait_for

CONFIG = """<definitions xmlns="http://ws.apache.org/ns/synapse">
<inboundEndpoint name="Echo" protocol="ws" sequence="Echo"><parameters><parameter name="inbound.ws.port">%d</parameter></parameters></inboundEndpoint>
<sequence name="Echo"><respond/></sequence>
<api name="Pass" context="/pass"><resource methods="GET"><inSequence><send><endpoint><address uri="ws://127.0.0.1:%d/"/></endpoint></send></inSequence></resource></api>
</definitions>"""
HANDSHAKE = (b"GET %s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
SWITCHED = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
PER_CLIENT = 4000  # connections of one process of the clients or of the backend
PATIENCE = 120


def files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def receive(connection, count):
    got = b""
    while len(got) < count:
        piece = connection.recv(count - len(got))
        if not piece:
            raise ConnectionError("closed")
        got += piece
    return got


def frame(connection):
    """The next frame of a server or of a client, with its mask taken off."""
    first, second = receive(connection, 2)
    length = second & 127
    if length == 126:
        length, = struct.unpack("!H", receive(connection, 2))
    mask = receive(connection, 4) if second & 128 else bytes(4)
    return first & 15, bytes(byte ^ mask[at % 4] for at, byte in enumerate(receive(connection, length)))


def backend(listener):
    """Answers each frame with the same, whoever sent it."""
    files()
    poll, open_ = select.epoll(), {}
    listener.setblocking(False)
    poll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)
    while True:
        for number, _ in poll.poll():
            if number == listener.fileno():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    continue
                connection.settimeout(PATIENCE)
                open_[connection.fileno()] = [connection, False]
                poll.register(connection, select.EPOLLIN)
                continue
            connection, is_switched = open_[number]
            try:
                if is_switched:
                    kind, text = frame(connection)
                    connection.sendall(bytes([128 | kind, len(text)]) + text)
                else:
                    head = b""
                    while not head.endswith(b"\r\n\r\n"):
                        head += receive(connection, 1)
                    connection.sendall(SWITCHED)
                    open_[number][1] = True
            except OSError:
                poll.unregister(connection)
                connection.close()
                del open_[number]


def client(number, count, port, path, rounds, barrier, results):
    """Opens, then sends and reads each round on all connections, in step with the other processes."""
    files()
    errors, took, connections = [], [], []
    for at in range(count):
        try:
            connection = socket.socket()
            connection.settimeout(PATIENCE)
            connection.bind((f"127.0.{1 + number}.{1 + at % 200}", 0))
            connection.connect(("127.0.0.1", port))
            connection.sendall(HANDSHAKE % path)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += receive(connection, 1)
            if b" 101 " not in head:
                raise ConnectionError(head.split(b"\r\n")[0].decode())
            connections.append((at, connection))
        except OSError as error:
            errors.append(f"opening {at}: {error!r}")
    for turn in range(rounds):
        barrier.wait()
        begun = time.monotonic()
        for at, connection in connections:
            text = b"%d-%d-%d" % (number, at, turn)
            connection.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
        for at, connection in connections:
            try:
                kind, text = frame(connection)
                if (kind, text) != (1, b"%d-%d-%d" % (number, at, turn)):
                    raise ConnectionError(f"got {kind} {text!r}")
            except OSError as error:
                errors.append(f"round {turn}, {at}: {error!r}")
        took.append(time.monotonic() - begun)
    barrier.wait()  # the memory is read
    barrier.wait()
    for _, connection in connections:
        try:
            connection.sendall(b"\x88\x82" + bytes(4) + b"\x03\xe8")
            kind, text = frame(connection)
            if (kind, text) != (8, b"\x03\xe8"):
                raise ConnectionError(f"close: got {kind} {text!r}")
        except OSError as error:
            errors.append(repr(error))
    results.put((len(connections), took, errors))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--connections", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--busbar", default=TARGET / "release" / "busbar")
    options = arguments.parse_args()
    hard, failed = files(), False
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    with tempfile.TemporaryDirectory() as work, Machines(work) as machines:
        backends = [multiprocessing.Process(target=backend, args=(listener,), daemon=True) for _ in range(-(-options.connections // PER_CLIENT))]
        for process in backends:
            process.start()
        for name, each in ("sequence", 1), ("backend", 2):
            # The bus keeps some descriptors in reserve.
            room = (hard - 700) // each
            buses = -(-options.connections // room)
            ports = []
            for number in range(buses):
                http, admin, inbound = free_port(), free_port(), free_port()
                path = pathlib.Path(work) / f"bus-{number}.xml"
                path.write_text(CONFIG % (inbound, listener.getsockname()[1]))
                process = machines.start(None, options.busbar, "run", path, "--http", f"127.0.0.1:{http}", "--admin", f"127.0.0.1:{admin}",
                                         "--set", "limits.backend_connections=20000", "--set", "limits.backend_waiting=20000", "--set", "limits.flows=20000")
                wait_for(http)
                ports.append((process.pid, inbound if each == 1 else http))
            clients = buses * -(-options.connections // (buses * PER_CLIENT))
            shares = [options.connections // clients + (number < options.connections % clients) for number in range(clients)]
            barrier, results = multiprocessing.Barrier(len(shares) + 1), multiprocessing.Queue()
            begun = time.monotonic()
            for number, count in enumerate(shares):
                port = ports[number * buses // len(shares)][1]
                place = (number, count, port, b"/" if each == 1 else b"/pass", options.rounds, barrier, results)
                multiprocessing.Process(target=client, args=place, daemon=True).start()
            barrier.wait()
            opened = time.monotonic() - begun
            for _ in range(options.rounds):
                barrier.wait()
            memory = " and ".join(f"{resident(pid):.0f}" for pid, _ in ports)
            descriptors = " and ".join(str(len(os.listdir(f"/proc/{pid}/fd"))) for pid, _ in ports)
            barrier.wait()
            ended = [results.get(timeout=PATIENCE) for _ in shares]
            errors = [error for one in ended for error in one[2]]
            slowest = " ".join(f"{max(one[1][turn] for one in ended):.2f}" for turn in range(options.rounds))
            print(f"{name}: {sum(one[0] for one in ended)} WebSockets at a time in {buses} process(es), opened in {opened:.1f} s, {options.rounds} texts on each came back, "
                  f"a round of all in {slowest} s; {memory} MiB and {descriptors} descriptors; {len(errors)} errors {errors[:3] or ''}", flush=True)
            failed |= bool(errors) or sum(one[0] for one in ended) != options.connections
            machines.stop()
    sys.exit(failed)


if __name__ == "__main__":
    main()
