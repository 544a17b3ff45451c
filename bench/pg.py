#!/usr/bin/env python3
"""CPU time of a query of libdomus-pg beside that of pgbench.

    python3 bench/pg.py BIN [--seconds N] [--rounds N]

Both read one row by its key (pgbench -S -M prepared) on one thread, over the same number of connections
to the same server, in rounds that alternate, because the machine has other things to do. The CPU time is
that of all threads of the process, divided by its queries; that of pgbench has its start and its connects
in it, some ms, and that of domus begins a second after its start. BIN is the directory of built programs.
In the last rows 64 readers of domus have 8 connections, so most of them wait for one and leave together,
and pgbench has 8 clients.
Prints lines `name value unit`: medians of the rounds, and of the ratios of neighbours.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

from ports import free_port

ROWS = 100000


def run(arguments):
    """Run a program to its end: its output, and its CPU time in seconds."""
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"pg: {arguments[0]} has failed")
    return output, usage.ru_utime + usage.ru_stime


def measure(programs, url, connections, readers, options):
    """Returns the CPU time of a query, in us, of domus and of pgbench."""
    output, _ = run([f"{options.bin}/pg_domus", url, str(connections), str(options.seconds), str(ROWS), str(readers)])
    domus = sum(int(re.search(name + r"_ns (\d+)", output).group(1)) for name in ("user", "system")) / 1e9
    output, cpu = run([f"{programs}/pgbench", "-n", "-S", "-M", "prepared", "-c", str(connections), "-j", "1",
                       "-T", str(options.seconds + 1), url])
    pgbench = cpu / int(re.search(r"processed: (\d+)", output).group(1))
    return domus * 1e6, pgbench * 1e6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    programs = sorted(os.listdir("/usr/lib/postgresql"))[-1]
    programs = f"/usr/lib/postgresql/{programs}/bin"
    with tempfile.TemporaryDirectory(prefix="domus-pg-") as directory:
        os.chmod(directory, 0o755)
        server = f"{root}/tools/postgres"
        url = subprocess.run([server, "start", f"{directory}/pg", str(free_port())], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
        try:
            subprocess.run([f"{programs}/pgbench", "-i", "-s", str(ROWS // 100000), url], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for connections, readers in ((1, 1), (8, 8), (16, 16), (8, 64)):
                rounds = [measure(programs, url, connections, readers, options) for _ in range(options.rounds)]
                of = f"pg_{connections}" if readers == connections else f"pg_{connections}_{readers}"
                for place, name in enumerate(("domus", "pgbench")):
                    median = statistics.median(each[place] for each in rounds)
                    print(f"{of}_{name}_cpu {median:.2f} us", flush=True)
                ratio = statistics.median(each[0] / each[1] for each in rounds)
                print(f"{of}_ratio {ratio:.3f} times", flush=True)
        finally:
            subprocess.run([server, "stop", f"{directory}/pg", "immediate"], check=False)


if __name__ == "__main__":
    main()
