"""What the comparing scripts share: processes on cores, their CPU time, load, single requests, and instruction counts."""
import collections, http.client, os, pathlib, re, shutil, socket, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SUITES = pathlib.Path(os.environ.get("BUSBAR_SUITES", ROOT.parent / "shared"))
QUIET = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

# What every client of these scripts sends beside the body.
HEADERS = {"Content-Type": "text/xml", "SOAPAction": '"urn:buyStocks"', "X-Route": "echo"}


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            sys.exit(f"{tool} is missing: apt-get install {' '.join(tools)}")


# --- processes -------------------------------------------------------------------------------------------------------

def cpu(pid):
    """User and system time of a process in seconds, of all its threads (those that have ended count in ticks)."""
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    except (OSError, IndexError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


class Machines:
    """The processes of one run, which end with the `with` block. What they say is in `work/log.N`, and shown if the script gives up."""

    def __init__(self, work):
        self.work, self.running = pathlib.Path(work), []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is SystemExit:
            for log in sorted(self.work.glob("log.*")):
                print(f"{log}: {log.read_text(errors='replace')[-1500:]}", file=sys.stderr)
        self.stop()

    def start(self, core, *command, **more):
        """Starts a process on a core; `None`: on any."""
        log = open(self.work / f"log.{len(self.running)}", "w")
        pin = [] if core is None else ["taskset", "-c", str(core)]
        process = subprocess.Popen([*pin, *map(str, command)], stdout=log, stderr=log, **more)
        self.running.append(process)
        return process

    def stop(self):
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, seconds=10):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"nothing listens on port {port}")
            time.sleep(0.05)


# --- requests --------------------------------------------------------------------------------------------------------

def ask(port, path, body, headers=HEADERS):
    """One request: status and body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def exact(port, path, body):
    """One request whose answer has to be the very bytes that were sent."""
    if ask(port, path, body) != (200, body):
        sys.exit(f"port {port} {path}: the answer is not the request")


def script(work, name, body, headers=HEADERS):
    """A script for wrk that sends this; `body` is a file."""
    lines = [f'local f = io.open("{body}", "rb"); wrk.body = f:read("*a"); f:close(); wrk.method = "POST"']
    lines += [f"wrk.headers[{quoted(key)}] = {quoted(value)}" for key, value in headers.items()]
    path = pathlib.Path(work) / f"{name}.lua"
    path.write_text("\n".join(lines) + "\n")
    return path


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def load(port, path, lua, seconds, connections=32, core=1):
    """Load of wrk from a core (`None`: from any); answers how many requests were answered, all of them with 2xx."""
    pin = [] if core is None else ["taskset", "-c", str(core)]
    out = subprocess.run([*pin, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(lua), f"http://127.0.0.1:{port}{path}"],
                         capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"port {port} {path}:\n{out}")
    return int(re.search(r"(\d+) requests in", out)[1])


def cost(process, port, path, lua, seconds, **more):
    """CPU of a process in microseconds per request, and requests per second, under `load`."""
    while True:
        before, start = cpu(process.pid), time.monotonic()
        count = load(port, path, lua, seconds, **more)
        if count:
            return (cpu(process.pid) - before) * 1e6 / count, count / (time.monotonic() - start)
        seconds *= 4


# --- instructions ----------------------------------------------------------------------------------------------------

ANSWERED = "busbar_transport::serve::write_head"  # is called once for an answer
FEW = 200  # requests, beside the 32 that may be under way at the end


class Counted:
    """A command under callgrind, of which the steady state is counted."""

    def __init__(self, machines, *command):
        need("valgrind", "callgrind_control")
        self.profile, self.dumps = machines.work / "profile", 0
        self.process = machines.start(None, "valgrind", "--tool=callgrind", f"--callgrind-out-file={self.profile}", *command)

    def control(self, what):
        subprocess.run(["callgrind_control", what, str(self.process.pid)], check=True, **QUIET)

    def count(self, port, path, lua, seconds):
        """Instructions by function, calls by function, and requests: for so long, and as much longer as a few of them take."""
        while load(port, path, lua, seconds, core=None) < FEW:
            seconds *= 2
            if seconds > 64:
                sys.exit(f"{path} is too slow to be counted")
        self.control("--zero")
        requests = load(port, path, lua, seconds, core=None)
        self.dumps += 1
        self.control(f"--dump=part {self.dumps}")
        own, calls = profile(pathlib.Path(f"{self.profile}.{self.dumps}"))
        # Answers that the client did not wait for at the end were paid for as well.
        answers = calls[ANSWERED]
        return own, calls, answers if requests <= answers < 2 * requests else requests


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


# --- documents -------------------------------------------------------------------------------------------------------

def table(heads, rows):
    """An aligned Markdown table; a head that ends with a colon is a column of numbers."""
    texts = [[head.rstrip(":") for head in heads], *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[n]) for row in texts) for n in range(len(heads))]
    right = [head.endswith(":") for head in heads]

    def line(row):
        return "| " + " | ".join(cell.rjust(width) if side else cell.ljust(width) for cell, width, side in zip(row, widths, right)) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if side else "-") for width, side in zip(widths, right)) + "|"
    return "\n".join([line(texts[0]), rule, *map(line, texts[1:])])


def write(document, section, text):
    """Puts a text between the markers `<!-- begin SECTION -->` and `<!-- end SECTION -->` of a document."""
    path, begin, end = pathlib.Path(document), f"<!-- begin {section} -->", f"<!-- end {section} -->"
    old = path.read_text()
    if begin not in old or end not in old:
        sys.exit(f"{document} has no section {begin} … {end}")
    head, rest = old.split(begin, 1)
    path.write_text(f"{head}{begin}\n{text.strip()}\n{end}{rest.split(end, 1)[1]}")
