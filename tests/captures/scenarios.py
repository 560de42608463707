"""What is recorded: one function a scenario, each run in a fresh `Net` while the recorders run.

In: a `Net`. Out: traffic on its cable. Never depends on another scenario, and never fails because a peer is refused:
being refused is what some of them are for.
"""
import os
import subprocess
import threading
import time

from net import DNS, GW6, LAN, LAN2, LAN6, LAN_MAC, MUTE, SILENT, WEB, WEB6

NOWHERE, REFUSED_NET = "198.51.100.200", "203.0.113.9"  # no route there; refused by the router


def curl(net, *argv, at="lan"):
    """curl, quiet and with a time limit; its failures are part of the scenario."""
    return net.run(at, "curl", "-sS", "-o", "/dev/null", "-m", "5", "-A", "curl", *argv, check=False)


def ping(net, address, *argv, at="lan", count=3):
    """ping, quick; its failures are part of the scenario."""
    return net.run(at, "ping", "-q", "-n", "-c", str(count), "-i", "0.2", "-W", "1", *argv, address, check=False)


def dig(net, *argv):
    """dig, one try of two seconds unless told otherwise."""
    return net.run("lan", "dig", f"@{DNS}", "+tries=1", "+time=2", *argv, check=False)


def serve_dns(net):
    """dnsmasq with a small zone of its own and nothing from the machine."""
    long_text = ",".join("a rather long text that does not fit into 512 bytes".split() * 15)
    net.start("net", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
              "--user=root", "--pid-file=", "--bind-interfaces", f"--listen-address={DNS}", "--cache-size=0",
              f"--host-record=web.example,{WEB},{WEB6}", f"--host-record=ns.example,{DNS}",
              "--cname=www.example,web.example", "--mx-host=example,web.example,10", f"--txt-record=long.example,{long_text}",
              "--local=/example/", stderr=subprocess.DEVNULL)
    net.wait_port("net", DNS, 53)


def web(net):
    """HTTP over TCP: closes, resets, a bigger transfer, refused and mute servers; once over IPv6."""
    net.serve("net", "web", WEB, 80)
    net.serve("net", "web", WEB6, 80)
    yield
    curl(net, f"http://{WEB}/200")
    curl(net, f"http://{WEB}/300", f"http://{WEB}/missing", f"http://{WEB}/400")  # three requests, one connection
    curl(net, "--data", "x" * 6000, "-H", "Expect:", f"http://{WEB}/form")
    curl(net, f"http://{WEB}/100000")
    curl(net, f"http://{WEB}/slow")
    curl(net, f"http://{WEB}/reset")
    net.peer("lan", "abort", WEB, 80, "/60000")
    curl(net, f"http://{WEB}:81/")  # refused: RST
    curl(net, "-m", "4", f"http://{MUTE}/")  # no answer: SYN sent again
    curl(net, f"http://{REFUSED_NET}/")  # ICMP: administratively prohibited
    curl(net, f"http://[{WEB6}]/500")
    together = [threading.Thread(target=curl, args=(net, "--interface", source, f"http://{WEB}/{size}"))
                for source, size in ((LAN, 9000), (LAN2, 8000), (LAN2, 7000))]
    for t in together:
        t.start()
    for t in together:
        t.join()


def dns(net):
    """DNS over UDP and TCP: answers, no such name, truncated and asked again by TCP, no server, no answer, late answers."""
    serve_dns(net)
    net.serve("net", "late", WEB, 5300)
    yield
    late = [threading.Thread(target=net.peer, args=("lan", "ask", f"{LAN}:{6000 + wait}", WEB, 5300, wait, wait + 3))
            for wait in (2, 20, 65)]  # a firewall forgets an unanswered datagram after 60 s
    for t in late:
        t.start()
    dig(net, "web.example", "A")
    dig(net, "www.example", "AAAA")
    dig(net, "example", "MX", "+noedns")
    dig(net, "missing.example", "A")
    dig(net, "-x", WEB)
    dig(net, "web.example", "+tcp")
    dig(net, "long.example", "TXT", "+noedns")  # truncated, then TCP
    dig(net, "long.example", "TXT", "+bufsize=4096")
    dig(net, "-b", LAN2, "web.example", "A", "ns.example", "A", "example", "SOA")
    dig(net, "-p", "54", "web.example")  # port unreachable
    net.run("lan", "dig", f"@{MUTE}", "+tries=2", "+time=2", "web.example", check=False)
    dig(net, "-b", f"{LAN}#5353", "web.example", "A")
    time.sleep(33)  # longer than an answered flow is remembered
    dig(net, "-b", f"{LAN}#5353", "ns.example", "A")
    for t in late:
        t.join()


def icmp(net):
    """ping, ping6, ARP, ND, fragments, and every ICMP error that a host and a router send of their own accord."""
    yield
    for command in ("link set lan0 down", "link set lan0 up", f"link set lan0 address {LAN_MAC}", f"addr add {LAN6}/64 dev lan0"):
        net.run("lan", "ip", *command.split())  # down and up again: gratuitous ARP, DAD, MLD, router solicitation
    net.run("lan", "ip", "route", "replace", "default", "via", "10.0.0.1")
    net.run("lan", "ip", "route", "replace", "default", "via", GW6, "dev", "lan0")
    time.sleep(3)
    ping(net, WEB)
    ping(net, WEB, "-I", LAN2, count=1)
    ping(net, "10.0.0.1", "-s", "0", count=2)
    ping(net, WEB, "-s", "1472", "-M", "do", count=2)  # fragmentation needed
    net.run("lan", "ip", "route", "flush", "cache")
    ping(net, WEB, "-s", "3000", count=2)  # fragments both ways
    ping(net, MUTE, count=2)
    ping(net, NOWHERE, count=1)  # the router behind sends it back: redirect or time exceeded
    ping(net, REFUSED_NET, count=1)
    ping(net, "10.0.0.77", count=1)  # no such neighbour
    for ttl in ("1", "2"):
        ping(net, WEB, "-t", ttl, count=2)
    net.peer("lan", "trace", WEB, 3)
    net.peer("lan", "say", LAN, WEB, 9, "discard", "discard")
    ping(net, WEB6)
    ping(net, GW6, "-6", "-s", "1000", count=1)
    ping(net, WEB6, "-t", "1", count=1)
    ping(net, "2001:db8:1::1", count=1)  # no route
    ping(net, "ff02::1%lan0", count=1)
    ping(net, LAN, at="gw", count=2)
    net.run("gw", "ip", "neigh", "flush", "dev", "wan0")
    ping(net, LAN6, at="gw", count=1)


def ssh(net):
    """A login over SSH with idle times, and a plain TCP session that is half-closed at its end."""
    keys = net.dir.name
    for name in ("host", "user"):
        net.run("lan", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", f"{keys}/{name}")
    os.mkdir(f"{keys}/run")
    server = [f"ListenAddress={WEB}", f"HostKey={keys}/host", f"AuthorizedKeysFile={keys}/user.pub", "StrictModes=no",
              "PidFile=none", "UsePAM=no", "PasswordAuthentication=no", "PermitRootLogin=yes", "PrintMotd=no", "PrintLastLog=no"]
    options = " ".join(f"-o {o}" for o in server)
    # sshd wants a folder below /run: it gets a /run of its own
    net.start("net", "unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -f /dev/null {options}",
              stderr=subprocess.DEVNULL)
    net.wait_port("net", WEB, 22)
    net.serve("net", "talk", WEB, 2300)
    yield
    plain = threading.Thread(target=net.peer, args=("lan", "converse", WEB, 2300, 0, 1, 50, 2))
    plain.start()
    client = net.start("lan", "ssh", "-tt", "-F", "none", "-i", f"{keys}/user", "-o", f"UserKnownHostsFile={keys}/known",
                       "-o", "StrictHostKeyChecking=accept-new", "-o", "ServerAliveInterval=15", f"root@{WEB}", "/bin/sh",
                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for pause, line in ((2, "echo hello"), (1, "uname"), (35, "seq 200"), (20, "echo still here"), (1, "exit")):
        time.sleep(pause)
        for key in line + "\n":
            client.stdin.write(key)
            client.stdin.flush()
            time.sleep(0.05)
    if client.wait(timeout=20):
        raise RuntimeError("the SSH session did not end well")
    plain.join()


def outside(net):
    """Traffic that starts outside, to a host that stays silent (as behind a firewall) and to one that answers."""
    net.serve("lan", "web", LAN, 80)
    net.serve("net", "late", WEB, 5300)
    yield
    net.peer("net", "knock", WEB, SILENT, 22, 80, 443)
    net.peer("net", "say", WEB, SILENT, 53, "query", "query")
    ping(net, SILENT, "-I", WEB, at="net", count=2)
    net.peer("net", "trace", SILENT, 4)
    net.peer("lan", "ask", f"{LAN}:7000", WEB, 5300, 1, 3)
    net.peer("net", "say", f"{WEB}:5301", LAN, 7000, "from another port")
    net.peer("net", "say", f"{DNS}:5300", LAN, 7000, "from another host")
    curl(net, "--interface", WEB, f"http://{LAN}/300", at="net")  # a server inside that would answer
    net.peer("net", "knock", WEB, LAN, 81)  # …refused by the host itself
    net.peer("net", "say", WEB, LAN, 82, "anyone?")
    ping(net, LAN, "-I", WEB, at="net", count=2)


def mixed(net):
    """A few seconds of everything at once: what `make demo` shows."""
    serve_dns(net)
    net.serve("net", "web", WEB, 80)
    net.serve("net", "web", WEB6, 80)
    net.serve("net", "talk", WEB, 2300)
    net.serve("net", "late", WEB, 5300)
    yield

    def browse():
        for name in ("web.example", "www.example", "missing.example"):
            dig(net, name, "A")
        for path in ("200", "30000", "reset", "slow"):
            curl(net, f"http://{WEB}/{path}")
        curl(net, f"http://[{WEB6}]/500")
        curl(net, f"http://{WEB}:81/")

    def attack():
        net.peer("net", "knock", WEB, SILENT, 22, 23, 80, 443, 3389)
        net.peer("net", "say", WEB, SILENT, 53, "query", "query", "query")
        ping(net, SILENT, "-I", WEB, at="net")

    def probe():
        ping(net, WEB)
        ping(net, WEB6)
        net.peer("lan", "trace", WEB, 3)
        net.peer("lan", "ask", f"{LAN2}:7000", WEB, 5300, 3, 5)
        net.peer("net", "say", f"{DNS}:5300", LAN2, 7000, "from another host")

    def chat():
        net.peer("lan", "converse", WEB, 2300, 0, 2, 3)

    together = [threading.Thread(target=part) for part in (browse, attack, probe, chat)]
    for t in together:
        t.start()
    for t in together:
        t.join()


ALL = {f.__name__: f for f in (web, dns, icmp, ssh, outside, mixed)}
