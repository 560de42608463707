"""Three network namespaces in a row, and recorders on the cable a firewall would cut.

    lan ──(recorded here)── gw ── net

`lan` is a host of two addresses, `gw` its router, `net` the world behind. In: nothing. Out: a `Net` to run programs
in. Never leaves anything behind: namespaces live only as long as the process that holds them, which ends when its
standard input closes; and as it is the first of a process namespace, all programs end with it, even when the
recording was killed.
"""
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time

import pcapfile

HOLDERS = ("lan", "gw", "net")
LAN_MAC, GW_MAC, SILENT_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:01", "02:00:00:00:00:42"
LAN, LAN2, SILENT, GW = "10.0.0.10", "10.0.0.11", "10.0.0.66", "10.0.0.1"
LAN6, GW6 = "fd00:a::10", "fd00:a::1"
WEB, DNS, MUTE, WEB6 = "198.51.100.80", "198.51.100.53", "198.51.100.99", "2001:db8::80"

# Per namespace, one `ip` command a line. `gw` forwards, its cable to `net` has a smaller MTU, and it refuses one network.
SETUP = {
    "lan": f"""
        link set lan0 address {LAN_MAC}
        link set lan0 up
        addr add {LAN}/24 dev lan0
        addr add {LAN2}/24 dev lan0
        addr add {LAN6}/64 dev lan0 nodad
        route add default via {GW}
        route add default via {GW6}""",
    "gw": f"""
        link set wan0 address {GW_MAC}
        link set wan0 up
        link set far0 mtu 1400
        link set far0 up
        addr add {GW}/24 dev wan0
        addr add {GW6}/64 dev wan0 nodad
        neigh add {SILENT} lladdr {SILENT_MAC} dev wan0
        addr add 192.0.2.1/30 dev far0
        addr add fd00:f::1/64 dev far0 nodad
        route add 198.51.100.0/24 via 192.0.2.2
        route add prohibit 203.0.113.0/24
        route add 2001:db8::/64 via fd00:f::2""",
    "net": f"""
        link set net0 mtu 1400
        link set net0 up
        addr add 192.0.2.2/30 dev net0
        addr add fd00:f::2/64 dev net0 nodad
        addr add {WEB}/32 dev lo
        addr add {DNS}/32 dev lo
        addr add {WEB6}/128 dev lo nodad
        route add blackhole {MUTE}
        route add 10.0.0.0/24 via 192.0.2.1
        route add fd00:a::/64 via fd00:f::1""",
}
SYSCTL = {
    "lan": ["ipv4/conf/lan0/arp_notify=1"],
    "gw": ["ipv4/ip_forward=1", "ipv6/conf/all/forwarding=1"],
    "net": ["ipv4/ip_forward=1"],
}
FREE_ICMP = ["ipv4/icmp_ratelimit=0", "ipv4/icmp_msgs_per_sec=100000", "ipv6/icmp/ratelimit=0"]
OFFLOADS = ["tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off"]


def die_with_parent():
    """Runs in a child before its program: the kernel kills it when this process is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Net:
    """The namespaces and everything that runs in them; use as a context manager."""

    def __init__(self):
        self.holders, self.programs, self.recorders = {}, [], []
        self.dir = tempfile.TemporaryDirectory(prefix="captures-")

    def __enter__(self):
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for p in self.recorders:
            p.kill()
        for holder in self.holders.values():
            holder.stdin.close()  # and all programs are gone
        for p in self.recorders + self.programs + list(self.holders.values()):
            p.wait()
        self.dir.cleanup()

    def _build(self):
        for name in HOLDERS:
            self.holders[name] = subprocess.Popen(
                ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "echo ready; exec cat"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        for name, holder in self.holders.items():
            if holder.stdout.readline() != b"ready\n":
                sys.exit("cannot make network namespaces: run as root, with CAP_SYS_ADMIN")
        for near, near_if, far, far_if in (("lan", "lan0", "gw", "wan0"), ("gw", "far0", "net", "net0")):
            subprocess.run(self._on_cable(near, ["ip", "link", "add", near_if, "type", "veth", "peer", "name", far_if,
                                                 "netns", str(self.holders[far].pid)]), check=True)
            self.run(near, "ethtool", "-K", near_if, *OFFLOADS)
            self.run(far, "ethtool", "-K", far_if, *OFFLOADS)
        for name in HOLDERS:
            for setting in FREE_ICMP + SYSCTL[name]:
                key, value = setting.split("=")
                self.run(name, "sh", "-c", f"echo {value} > /proc/sys/net/{key}")
            self.run(name, "ip", "link", "set", "lo", "up")
        for name in ("net", "gw", "lan"):
            self.run(name, "ip", "-batch", "-", input=SETUP[name])

    def _on_cable(self, name, argv):
        """`argv` in the network of `name`, but among our own processes: for process ids and signals that must arrive."""
        return ["nsenter", f"--net=/proc/{self.holders[name].pid}/ns/net", "--", *argv]

    def _inside(self, name, argv):
        ns = f"/proc/{self.holders[name].pid}/ns"
        return ["nsenter", f"--net={ns}/net", f"--mount={ns}/mnt", f"--pid={ns}/pid_for_children", "--", *argv]

    def run(self, name, *argv, check=True, timeout=120, **options):
        """Runs a program in namespace `name` and waits for it; its output is returned, not shown."""
        r = subprocess.run(self._inside(name, argv), capture_output=True, text=True, timeout=timeout,
                           preexec_fn=die_with_parent, **options)
        if check and r.returncode:
            raise RuntimeError(f"{' '.join(argv)}: exit status {r.returncode}\n{r.stdout}{r.stderr}")
        return r

    def start(self, name, *argv, **options):
        """Starts a program in namespace `name`; it ends with the `Net` at the latest."""
        p = subprocess.Popen(self._inside(name, argv), preexec_fn=die_with_parent, text=True, **options)
        self.programs.append(p)
        return p

    def peer(self, name, *argv, **options):
        """Runs one of the clients of `peers.py` to its end."""
        return self.run(name, sys.executable, os.path.join(os.path.dirname(__file__), "peers.py"), *map(str, argv), **options)

    def serve(self, name, *argv):
        """Starts one of the servers of `peers.py` and returns when it listens."""
        p = self.start(name, sys.executable, "-u", os.path.join(os.path.dirname(__file__), "peers.py"),
                       *map(str, argv), stdout=subprocess.PIPE)
        if p.stdout.readline() != "listening\n":
            raise RuntimeError(f"{argv}: did not start")
        return p

    def wait_port(self, name, address, port):
        """Returns when something listens on TCP `port` in `name`, without touching the recorded cable."""
        for _ in range(100):
            listening = self.run(name, "ss", "-Htln", "src", f"{address}:{port}").stdout
            if listening:
                return
            time.sleep(0.05)
        raise RuntimeError(f"nothing listens on {address}:{port}")

    def record(self):
        """Starts recording: what `lan` sends, and what comes to it, each into a file."""
        for side, direction in (("lan", "out"), ("wan", "in")):
            tcpdump = ["tcpdump", "-i", "lan0", "-Q", direction, "-nUZ", "root", "--immediate-mode",
                       "-w", f"{self.dir.name}/{side}.pcap"]
            p = subprocess.Popen(self._on_cable("lan", tcpdump), preexec_fn=die_with_parent,
                                 stderr=subprocess.PIPE, text=True)
            self.recorders.append(p)
            while "listening on" not in (line := p.stderr.readline()):
                if not line:
                    raise RuntimeError("tcpdump did not start")

    def stop_recording(self):
        """Ends the recorders; returns {"lan": frames, "wan": frames}."""
        time.sleep(0.5)  # what is still on its way
        for p in self.recorders:
            p.send_signal(signal.SIGINT)
            report = p.communicate(timeout=10)[1]
            if "\n0 packets dropped by kernel" not in report:
                raise RuntimeError(f"tcpdump lost frames:\n{report}")
        self.recorders.clear()
        return {side: pcapfile.read(f"{self.dir.name}/{side}.pcap") for side in ("lan", "wan")}
