#!/usr/bin/env python3
"""Records the captures beside this file afresh: real programs in network namespaces of their own.

usage: record.py [SCENARIO...]        all of them when none is named; takes about two minutes; needs root

Needs Debian's tcpdump, iproute2, ethtool, curl, dnsmasq-base, bind9-dnsutils, iputils-ping, openssh-client and
openssh-server (`tools/setup captures` installs them). The namespaces are gone when this program is, however it ends.
"""
import os
import shutil
import signal
import subprocess
import sys

import check
import net
import pcapfile
import scenarios

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ["tcpdump", "ip", "ss", "ethtool", "curl", "dnsmasq", "dig", "ping", "ssh", "ssh-keygen", "sshd", "nsenter", "unshare"]
LIMIT = 300_000


def record(name):
    """Records one scenario into its folder."""
    with net.Net() as n:
        steps = scenarios.ALL[name](n)
        next(steps)  # its servers are up now
        n.record()
        for _ in steps:
            pass
        sides = n.stop_recording()
    check.separate(sides["lan"], sides["wan"])
    os.makedirs(f"{HERE}/{name}", exist_ok=True)
    for side, frames in sides.items():
        check.frames(f"{name}/{side}", frames)
        data = pcapfile.pack(frames)
        if len(data) > LIMIT:
            sys.exit(f"{name}/{side}: {len(data)} bytes, more than {LIMIT}: make the scenario smaller")
        with open(f"{HERE}/{name}/{side}.pcap", "wb") as f:
            f.write(data)
    print(f"{name}: {len(sides['lan'])} frames from lan, {len(sides['wan'])} from wan", flush=True)


def main(names):
    """Records the named scenarios, side by side when they are several."""
    unknown = [n for n in names if n not in scenarios.ALL]
    if unknown:
        sys.exit(f"no scenario {', '.join(unknown)}; there are {', '.join(scenarios.ALL)}")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; `tools/setup captures` installs them")
    if os.geteuid():
        sys.exit("record.py makes network namespaces: run it as root")
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, lambda number, _: sys.exit(128 + number))
    if len(names) == 1:
        return record(names[0])
    each = [subprocess.Popen([sys.executable, __file__, n], preexec_fn=net.die_with_parent) for n in names or scenarios.ALL]
    if any([p.wait() for p in each]):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
