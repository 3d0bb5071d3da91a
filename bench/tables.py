#!/usr/bin/env python3
"""The tables of docs/performance.md, from the runs of a report.

    target/release/busbar bench all --out report && bench/tables.py report/runs.json [--write docs/performance.md]

Without --write they are printed. A section whose part the report lacks stays as it is."""
import argparse, json, statistics, sys

from common import table, write

SIZES = {512: "512 B", 1000: "1,000 B", 1 << 10: "1 KB", 5 << 10: "5 KB", 10 << 10: "10 KB", 100 << 10: "100 KB", 1 << 20: "1 MB"}


def number(value):
    """Three digits that count."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdict(budget):
    values = [value for _, value in budget["values"]]
    if not values:
        return "not measured"
    good = min(values) >= budget["bound"] if budget["is_least"] else max(values) <= budget["bound"]
    return "met" if good else "**missed**"


def machine(runs):
    first = runs[0]
    systems = {}
    for run in runs:
        for system in run["systems"]:
            systems.setdefault(system["name"], system["version"].split(" - ")[0])
    names = [f"{name} ({version})" for name, version in systems.items() if version and "build" not in name and "workers" not in name]
    about = first["machine"]
    minutes = sum(run["took"] for run in runs) / 60
    return (f"Begun {first['begun']} on {about['cores']} cores of an {about['processor']} with {about['memory'] / 1024:.0f} GiB ({about['system']}), "
            f"{minutes:.0f} minutes in all. Systems: " + "; ".join(names) + ".")


def budgets(run):
    rows = []
    for budget in run["budgets"]:
        bound = ("at least " if budget["is_least"] else "at most ") + f"{budget['bound']:g}"
        values = ", ".join(number(value) + (f" ({size})" if size else "") for size, value in budget["values"])
        rows.append([budget["work"], budget["unit"], bound, values or budget.get("absent") or "–", verdict(budget)])
    order = {"**missed**": 0, "not measured": 1, "met": 2}
    rows.sort(key=lambda row: order[row[-1]])
    return table(["work", "measured", "budget", "values", "verdict"], rows)


def systems(run):
    return [system["name"] for system in run["systems"]]


def cells(run, setting=""):
    """The rates of what was answered right: (scenario, system) -> {(size, clients): [rates]}."""
    found = {}
    for cell in run["cells"]:
        if cell.get("setting", "") == setting and cell.get("right") and not cell.get("failed"):
            rates = found.setdefault((cell["scenario"], cell["system"]), {})
            rates.setdefault((cell["size"], cell["clients"]), []).append(cell["rate"])
    return found


def names(found):
    return list(dict.fromkeys(scenario for scenario, _ in found))


def best(run):
    """The round of 2010: the highest rate of each size, with its number of clients."""
    found, rows = cells(run), []
    for scenario in names(found):
        for size in sorted({size for name, _ in found if name == scenario for size, _ in found[(scenario, _)]}):
            row = [scenario, SIZES.get(size, size)]
            for system in systems(run):
                rates = [(statistics.mean(all), clients) for (one, clients), all in found.get((scenario, system), {}).items() if one == size]
                rate, clients = max(rates, default=(None, None))
                row.append("–" if rate is None else f"{rate:,.0f} ({clients})")
            rows.append(row)
    return table(["scenario", "message", *(f"{name}:" for name in systems(run))], rows)


def means(run):
    """Round 6.5: the mean over the cells that all systems of the scenario have."""
    found, rows = cells(run), []
    for scenario in names(found):
        able = [system for system in systems(run) if (scenario, system) in found]
        common = set.intersection(*(set(found[(scenario, system)]) for system in able))
        row = [scenario, len(common)]
        for system in systems(run):
            rates = [statistics.mean(found[(scenario, system)][cell]) for cell in common] if system in able else []
            row.append(f"{statistics.mean(rates):,.0f}" if rates else "–")
        rows.append(row)
    return table(["scenario", "cells:", *(f"{name}:" for name in systems(run))], rows)


def added(run):
    """The latency that a system adds: its mean less the mean of the direct call of the same turn, the median of the turns."""
    turns = {}
    for cell in run["cells"]:
        if cell.get("setting", "") == "added latency" and not cell.get("failed"):
            turns.setdefault((cell["scenario"], cell["repetition"]), {})[cell["system"]] = cell["mean"]
    rows = []
    for scenario in dict.fromkeys(scenario for scenario, _ in turns):
        row = [scenario]
        for system in systems(run):
            differences = [by[system] - by["(backend)"] for (name, _), by in turns.items() if name == scenario and system in by and "(backend)" in by]
            row.append(f"{statistics.median(differences):.2f}" if differences else "–")
        rows.append(row)
    return table(["scenario", *(f"{name}, ms:" for name in systems(run))], rows)


def evaluation(run):
    """The evaluation: the mean response time, in milliseconds."""
    levels = {}
    for cell in run["cells"]:
        if cell.get("right") and not cell.get("failed"):
            key = (cell["scenario"], cell["clients"], cell["size"])
            levels.setdefault(key, {}).setdefault(cell["system"], []).append(cell["mean"])
    rows = []
    for (scenario, clients, size), by in sorted(levels.items()):
        row = [scenario, clients, SIZES.get(size, f"{size >> 10} KB")]
        rows.append(row + [number(statistics.mean(by[system])) if system in by else "–" for system in systems(run)])
    return table(["scenario", "clients:", "payload:", *(f"{name}, ms:" for name in systems(run))], rows)


def generator(run):
    rates = {}
    for cell in run["cells"]:
        if cell["scenario"] == "echo":
            rates.setdefault(cell["clients"], {}).setdefault(cell["system"], []).append(cell)
    tools = list(dict.fromkeys(cell["system"] for cell in run["cells"] if cell["scenario"] == "echo"))
    rows = []
    for clients in sorted(rates):
        row = [f"{clients:,}"]
        for tool in tools:
            measured = rates[clients].get(tool, [])
            row.append(f"{max(cell['rate'] for cell in measured):,.0f}" if measured else "–")
        rows.append(row)
    return table(["connections:", *(f"{tool}, requests/s:" for tool in tools)], rows)


PARTS = [("machine", None, machine), ("budgets", "budgets", budgets), ("round 2010", "2010", best), ("round 6.5", "6.5", means), ("added latency", "6.5", added),
         ("evaluation", "evaluate", evaluation), ("generator", "generator", generator)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", help="runs.json of a report")
    parser.add_argument("--write", metavar="FILE", help="the document whose sections are written")
    arguments = parser.parse_args()
    with open(arguments.runs) as file:
        runs = json.load(file)
    for section, method, make in PARTS:
        found = [run for run in runs if run["method"] == method]
        if method and not found:
            print(f"{section}: not in this report", file=sys.stderr)
            continue
        text = make(found[0] if method else runs)
        if arguments.write:
            write(arguments.write, section, text)
        else:
            print(f"\n{section}\n\n{text}")


main()
