#!/usr/bin/env python3
"""Instructions of single constructs of XSLT in version 1.0 and in 2.0 (or 3.0): what the same words cost in the later language.

    cargo build --release && bench/engines/constructs.py [--version 2.0] [--busbar BINARY] [--write docs/performance.md] [EXPRESSION…]

Each construct stands alone in an `xsl:for-each` over 400 orders. callgrind counts `busbar xslt` with it and without it; the difference is
divided by the number of times it runs, which is 400, or 160,000 where it is a predicate on the orders of the message.
Needs valgrind, and a binary with symbols. Without EXPRESSION: those of the table in docs/performance.md.
"""
import argparse, concurrent.futures, os, pathlib, re, subprocess, sys, tempfile
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import TARGET, need, table, write

ORDERS = 400

# As the value of xsl:value-of, as the test of xsl:if, and as a predicate on all orders.
VALUES = ["position()", "position() - 1", "last()", "$i", "$i - 1", "price * volume", "price * 1.1", "string-length(symbol)", "round(price)",
          "floor(price)", "number(price)", "substring(symbol, $i)", "translate(symbol, 'ABIM', 'abim')", "concat($symbol, '-', @k)",
          "sum(price | volume)", "format-number(price, '#,##0.00')", "*[2]", "*[last()]", "preceding-sibling::order[1]/@id"]
TESTS = ["position() = last()", "position() mod 2 = 1", "$i mod 2 = 0", "$symbol = 'IBM1'", "string-length(symbol) > 4",
         "contains(translate(symbol, 'i', 'I'), 'IB')", "normalize-space($symbol) != ''", "string(@id) = ''", "symbol and price > 200"]
# (Nodes that are chosen by an equality are indexed from the second time on: `!=` shows what a comparison costs, `=` the index.)
PREDICATES = ["@id != 3", "@id != '3'", "@id != $i", "@id != current()/@k", "symbol != $symbol", "@id = $i", "symbol = $symbol", "price > 150", "@k + 1 = 3", "position() mod 2 = 1",
              "starts-with(symbol, 'IBM')", "string-length(symbol) > 4", "concat(@k, symbol) = '1IBM1'", "local-name() = 'order'"]


def sheet(version, body):
    return f"""<xsl:stylesheet version="{version}" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><o>
<xsl:for-each select="orders/order"><xsl:variable name="i" select="position()"/><xsl:variable name="symbol" select="symbol"/>{body}</xsl:for-each>
</o></xsl:template></xsl:stylesheet>"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expressions", nargs="*", help="as values")
    parser.add_argument("--version", default="2.0")
    parser.add_argument("--busbar", default=str(TARGET / "release" / "busbar"))
    parser.add_argument("--write", metavar="DOCUMENT")
    options = parser.parse_args()
    need("valgrind")
    work = pathlib.Path(tempfile.mkdtemp())
    orders = "".join(f'<order id="{n}" k="{n % 7}"><symbol>{"IBM" if n % 3 else "SUNB"}{n % 5}</symbol><price>{100 + n * 1.5}</price>'
                     f"<volume>{n * 10}</volume></order>" for n in range(ORDERS))
    (work / "orders.xml").write_text(f"<orders>{orders}</orders>")

    def counted(version, body):
        with tempfile.NamedTemporaryFile("w", suffix=".xsl", dir=work, delete=False) as file:
            file.write(sheet(version, body))
        run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", options.busbar, "xslt", file.name, work / "orders.xml"],
                             capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{body}\n{run.stderr[-600:]}")
        return int(re.search(r"Collected : (\d+)", run.stderr)[1])

    wanted = [(f"`{e}`", f"<xsl:value-of select={quoteattr(e)}/>", ORDERS) for e in options.expressions or VALUES]
    if not options.expressions:
        wanted += [(f"`xsl:if` `{e}`", f"<xsl:if test={quoteattr(e)}>x</xsl:if>", ORDERS) for e in TESTS]
        wanted += [(f"`../order[{e}]`", f"<xsl:value-of select={quoteattr(f'count(../order[{e}])')}/>", ORDERS * ORDERS) for e in PREDICATES]
    versions = ["1.0", options.version]
    empty = {version: counted(version, "") for version in versions}
    rows = []
    # (Instructions do not depend on what else runs.)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda both: counted(*both), [(version, body) for _, body, _ in wanted for version in versions])
    for shown, _, times in wanted:
        cost = [(next(counts) - empty[version]) / times for version in versions]
        rows.append([shown.replace("|", "\\|"), f"{cost[0]:,.0f}", f"{cost[1]:,.0f}", f"{cost[1] / max(cost[0], 1):.2f}"])
    text = table(["in the loop", "1.0:", f"{options.version}:", "ratio:"], rows)
    print(text)
    if options.write:
        write(options.write, "constructs", text)


if __name__ == "__main__":
    main()
