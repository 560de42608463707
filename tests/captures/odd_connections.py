"""Odd frames, second half: connections, with pauses that matter, ICMP errors, and fragments.

In: a tape to add to. Each connection has ports of its own.
"""
import struct

from frames import ACK, FIN, IP, LAN_MAC, PSH, RST, SYN, WAN_MAC, echo, eth, icmp, ip, tcp, udp

IN, OUT, OTHER, ROUTER = "10.0.0.10", "198.51.100.80", "198.51.100.53", "192.0.2.1"
ports = iter(range(40_000, 50_000))


def out(packet):
    """A frame of the inside."""
    return eth(IP, packet)


def back(packet):
    """A frame of the outside."""
    return eth(IP, packet, src=WAN_MAC, dst=LAN_MAC)


def ask(port, data=b"question", to=OUT):
    """A UDP datagram from inside."""
    return ip(IN, to, 17, udp(IN, to, port, 53, data))


def answer(port, data=b"answer", src=OUT, sport=53):
    """A UDP datagram from outside."""
    return ip(src, IN, 17, udp(src, IN, sport, port, data))


class Stream:
    """One TCP connection from inside; sequence numbers start at 1000 (inside) and 5000 (outside)."""

    def __init__(self, tape, name, scale=True):
        self.t, self.name, self.port = tape, name, next(ports)
        self.options = b"\2\4\5\xb4\3\3\7\0" if scale else b"\2\4\5\xb4"

    def lan(self, what, flags, seq, ack=0, data=b"", **more):
        """A segment from inside; numbers count from the connection's first."""
        self.t.lan(f"TCP {self.name}: {what}", out(ip(IN, OUT, 6, tcp(IN, OUT, self.port, 80, flags, 1000 + seq, 5000 + ack if flags & ACK else 0, data, **more))))

    def wan(self, what, flags, seq, ack=0, data=b"", **more):
        """A segment from outside."""
        self.t.wan(f"TCP {self.name}: {what}", back(ip(OUT, IN, 6, tcp(OUT, IN, 80, self.port, flags, 5000 + seq, 1000 + ack if flags & ACK else 0, data, **more))))

    def open(self):
        """The three segments of the handshake."""
        self.lan("SYN", SYN, 0, options=self.options)
        self.wan("SYN|ACK", SYN | ACK, 0, 1, options=self.options)
        self.lan("ACK", ACK, 1, 1)
        return self


def datagrams(t):
    """UDP: unasked, answered, from elsewhere, late."""
    p, q, r = next(ports), next(ports), next(ports)
    t.wan("UDP nobody asked for", back(answer(p)))
    t.lan("UDP question", out(ask(p)))
    t.lan("UDP question again", out(ask(p)))
    t.wan("UDP answer from another port", back(answer(p, sport=54)))
    t.wan("UDP answer from another host", back(answer(p, src=OTHER)))
    t.wan("UDP answer", back(answer(p)))
    t.wan("UDP answer again", back(answer(p)))
    t.wan("UDP answer without checksum", back(ip(OUT, IN, 17, udp(OUT, IN, 53, p, b"answer", check=0))))
    t.wan("UDP answer with a wrong checksum", back(ip(OUT, IN, 17, udp(OUT, IN, 53, p, b"answer", check=0x1234))))
    t.wan("UDP answer behind a wrong IPv4 header checksum", back(ip(OUT, IN, 17, udp(OUT, IN, 53, p, b"answer"), check=0x1234)))
    t.lan("UDP question for later", out(ask(q)))
    t.lan("UDP question for much later", out(ask(r)))
    t.wait(28)
    t.wan("UDP answer 28 s after the last one", back(answer(p)))
    t.wait(31)
    t.wan("UDP answer 31 s after the last one", back(answer(p)))
    t.lan("UDP question after the flow is forgotten", out(ask(p)))
    t.wait(0.5)
    t.wan("UDP answer 59 s after its question", back(answer(q)))
    t.wait(2)
    t.wan("UDP answer 62 s after its question", back(answer(r)))


def pings(t):
    """ICMP queries and what looks like one."""
    def ping(what, ident, kind=8, code=0, **wrong):
        t.lan(f"ICMP, {what}", out(ip(IN, OUT, 1, icmp(kind, code, echo(ident, 1), b"ping", **wrong))))

    def pong(what, ident, kind=0, code=0, **wrong):
        t.wan(f"ICMP, {what}", back(ip(OUT, IN, 1, icmp(kind, code, echo(ident, 1), b"ping", **wrong))))

    pong("reply nobody asked for", 1)
    pong("request from outside", 2, kind=8)
    ping("reply to nobody, from inside", 3, kind=0)
    ping("request", 4)
    pong("reply", 4)
    pong("reply with another identifier", 5)
    pong("reply with a wrong checksum", 4, check=0x1234)
    pong("request under the identifier of the other side", 4, kind=8)
    ping("request with a wrong checksum", 6, check=0x1234)
    ping("request with code 1", 7, code=1)
    ping("timestamp request", 8, kind=13)
    pong("timestamp reply", 8, kind=14)
    ping("information request", 9, kind=15)
    ping("address mask request", 10, kind=17)
    ping("router solicitation", 11, kind=10)
    ping("type 255", 12, kind=255)
    t.lan("ICMP, 4 bytes", out(ip(IN, OUT, 1, icmp(8, 0)[:4])))
    t.lan("ICMP, no data", out(ip(IN, OUT, 1, icmp(8, 0, echo(13, 1)))))
    ping("request for later", 14)
    t.wait(61)
    pong("reply 61 s after its request", 14)


def errors(t):
    """ICMP errors about connections that exist, that do not, and that are told wrongly."""
    s = Stream(t, "for errors").open()
    p = next(ports)
    t.lan("UDP question for errors", out(ask(p)))
    t.lan("ICMP, request for errors", out(ip(IN, OUT, 1, icmp(8, 0, echo(30, 1), b"ping"))))
    datagram = ask(p)
    segment = ip(IN, OUT, 6, tcp(IN, OUT, s.port, 80, ACK, 1001, 5001))

    def error(what, kind, code, about, sender=OUT, dst=IN, rest=b"\0\0\0\0", **wrong):
        t.wan(f"ICMP error, {what}", back(ip(sender, dst, 1, icmp(kind, code, rest, about, **wrong))))

    error("port unreachable", 3, 3, datagram)
    error("port unreachable, 8 bytes of UDP", 3, 3, datagram[:28])
    error("port unreachable, 7 bytes of UDP", 3, 3, datagram[:27])
    error("host unreachable, from a router", 3, 1, datagram, ROUTER)
    error("time exceeded, from a router", 11, 0, segment, ROUTER)
    error("fragmentation needed", 3, 4, segment[:28], ROUTER, rest=b"\0\0\5\x78")
    error("source quench", 4, 0, segment, ROUTER)
    error("parameter problem", 12, 0, segment, ROUTER)
    error("redirect", 5, 1, datagram, "10.0.0.1", rest=b"\x0a\0\0\2")
    error("about an echo request", 3, 1, ip(IN, OUT, 1, icmp(8, 0, echo(30, 1), b"ping")), ROUTER)
    error("about an echo request nobody sent", 3, 1, ip(IN, OUT, 1, icmp(8, 0, echo(31, 1), b"ping")), ROUTER)
    error("about a connection nobody has", 3, 3, ask(next(ports)))
    error("about a packet of the outside", 3, 3, answer(p))
    error("the outer checksum wrong", 3, 3, datagram, check=0x1234)
    error("the inner header checksum wrong", 3, 3, ip(IN, OUT, 17, datagram[20:], check=0x1234))
    error("to another host than the packet came from", 3, 3, datagram, dst="10.0.0.11")
    error("the inner packet a later fragment", 3, 3, ip(IN, OUT, 17, datagram[20:], frag=10))
    error("the inner packet a first fragment", 3, 3, ip(IN, OUT, 17, datagram[20:], frag=0x2000))
    error("nothing inside", 3, 3, b"")
    error("inside, half an IPv4 header", 3, 3, datagram[:10])
    error("about an ICMP error", 3, 3, ip(IN, OUT, 1, icmp(3, 3, data=answer(p))))
    t.lan("ICMP error from inside, about an answer", out(ip(IN, OUT, 1, icmp(3, 3, data=answer(p)))))
    s.lan("data, after all the errors", PSH | ACK, 1, 1, b"still here")


def handshakes(t):
    """Connections that begin in other ways than they should."""
    t.wan("TCP SYN from outside", back(ip(OUT, IN, 6, tcp(OUT, IN, 1234, 22, SYN))))
    t.wan("TCP ACK from outside", back(ip(OUT, IN, 6, tcp(OUT, IN, 1234, 23, ACK, ack=1))))
    t.wan("TCP RST from outside", back(ip(OUT, IN, 6, tcp(OUT, IN, 1234, 24, RST))))
    s = Stream(t, "SYN thrice")
    s.lan("SYN", SYN, 0)
    s.lan("the same SYN", SYN, 0)
    s.lan("SYN of another number", SYN, 500)
    s.wan("SYN|ACK to the last", SYN | ACK, 0, 501)
    s.lan("ACK", ACK, 501, 1)
    s = Stream(t, "refused")
    s.lan("SYN", SYN, 0)
    s.wan("RST|ACK", RST | ACK, 0, 1)
    s.lan("SYN again, another number", SYN, 700)
    s.wan("SYN|ACK", SYN | ACK, 900, 701)
    s = Stream(t, "acknowledged by nobody")
    s.lan("SYN", SYN, 0)
    s.lan("ACK before any answer", ACK, 1, 1)
    s.wan("SYN|ACK", SYN | ACK, 0, 1)
    s = Stream(t, "opened by both")
    s.lan("SYN", SYN, 0)
    s.wan("SYN", SYN, 0)
    s.lan("SYN|ACK", SYN | ACK, 0, 1)
    s.wan("SYN|ACK", SYN | ACK, 0, 1)
    s = Stream(t, "in the middle")
    s.lan("data, first", PSH | ACK, 100, 100, b"hello")
    s.wan("ACK", ACK, 100, 105)
    s = Stream(t, "answered late")
    s.lan("SYN", SYN, 0)
    t.wait(31)
    s.wan("SYN|ACK after 31 s", SYN | ACK, 0, 1)


def windows(t):
    """Segments inside and outside of the window."""
    s = Stream(t, "windows").open()
    s.lan("data", PSH | ACK, 1, 1, b"x" * 100)
    s.lan("the same data again", PSH | ACK, 1, 1, b"x" * 100)
    s.wan("data", PSH | ACK, 1, 101, b"y" * 100)
    s.wan("data far beyond the window", PSH | ACK, 90_000_000, 101, b"y")
    s.wan("data far before the window", PSH | ACK, -90_000_000, 101, b"y")
    s.wan("acknowledges what was never sent", ACK, 101, 90_000_000)
    s.wan("keep-alive: one byte before", ACK, 100, 101)
    s.wan("no data, number far away", ACK, 90_000_000, 101)
    s.wan("RST far away", RST, 90_000_000)
    s.wan("RST inside the window, not at its edge", RST, 3000)
    s.wan("SYN at a number inside the window", SYN, 101)
    s.wan("SYN far away", SYN, 90_000_000)
    s.wan("SYN|FIN on an open connection", SYN | FIN, 101)
    s.wan("data with a wrong checksum", PSH | ACK, 101, 101, b"y" * 10, check=0x1234)
    s.wan("window 0", ACK, 101, 101, window=0)
    s.lan("data against a closed window", PSH | ACK, 101, 101, b"x" * 1000)
    s.wan("RST exactly where it belongs", RST, 101)
    s.lan("data after the reset", PSH | ACK, 101, 101, b"x")
    s = Stream(t, "numbers wrap", scale=False)
    s.lan("SYN", SYN, -1001)
    s.wan("SYN|ACK", SYN | ACK, 0, -1000)
    s.lan("ACK with data", PSH | ACK, -1000, 1, b"x" * 1000)
    s.lan("more data", PSH | ACK, 0, 1, b"x" * 1000)
    s.wan("ACK", ACK, 1, 1000)


def endings(t):
    """Closes, resets, what comes after, ports used again, long silence."""
    s = Stream(t, "closes").open()
    s.lan("FIN", FIN | ACK, 1, 1)
    s.wan("ACK", ACK, 1, 2)
    s.wan("data after the other side's FIN", PSH | ACK, 1, 2, b"y" * 10)
    s.lan("ACK", ACK, 2, 11)
    s.wan("FIN", FIN | ACK, 11, 2)
    s.lan("last ACK", ACK, 2, 12)
    s.wan("FIN again", FIN | ACK, 11, 2)
    s.lan("SYN: the same ports again", SYN, 5000)
    s.wan("SYN|ACK", SYN | ACK, 7000, 5001)
    s.lan("ACK", ACK, 5001, 7001)
    s = Stream(t, "closes and is forgotten").open()
    s.wan("FIN", FIN | ACK, 1, 1)
    s.lan("FIN", FIN | ACK, 1, 2)
    s.wan("last ACK", ACK, 2, 2)
    idle, closing, half = Stream(t, "idle").open(), Stream(t, "closing").open(), Stream(t, "half-closed").open()
    reset = Stream(t, "reset").open()
    closing.lan("FIN", FIN | ACK, 1, 1)
    closing.wan("FIN", FIN | ACK, 1, 2)
    half.lan("FIN", FIN | ACK, 1, 1)
    reset.lan("RST", RST, 1)
    reset.wan("data after RST", PSH | ACK, 1, 1, b"y")
    t.wait(46)
    s.wan("data 46 s after the last ACK", PSH | ACK, 2, 2, b"y")
    closing.lan("last ACK after 46 s", ACK, 2, 2)
    half.wan("data after 46 s", PSH | ACK, 1, 2, b"y")
    reset.wan("data 46 s after RST", PSH | ACK, 1, 1, b"y")
    t.wait(90)
    idle.wan("data after 136 s of silence", PSH | ACK, 1, 1, b"y")
    idle.lan("ACK", ACK, 1, 2)
    half.wan("data 90 s later", PSH | ACK, 2, 2, b"y")


def fragments(t):
    """IPv4 fragments: in order, reversed, twice, overlapping, too small, incomplete, back from outside."""
    def pieces(ident, port, size, cut, src=IN, dst=OUT):
        data = bytes(i * 7 & 255 for i in range(size))
        whole = udp(src, dst, *((port, 53) if src == IN else (53, port)), data)
        ends = [*range(cut, len(whole), cut), len(whole)]
        return [ip(src, dst, 17, whole[a:b], ident=ident, frag=(b < len(whole)) << 13 | a // 8)
                for a, b in zip([0, *ends], ends)]

    def send(what, packets, side=t.lan, frame=out):
        for i, packet in enumerate(packets):
            side(f"fragments, {what}: {i + 1} of {len(packets)}", frame(packet))

    p = next(ports)
    send("in order", pieces(100, p, 3000, 1208))
    send("the answer in order", pieces(101, p, 3000, 1208, OUT, IN), t.wan, back)
    send("last first", pieces(102, next(ports), 3000, 1208)[::-1])
    small = pieces(103, next(ports), 1000, 400)
    send("smaller than 1200 bytes", small)
    two = pieces(104, next(ports), 2000, 1208)
    send("the first twice", [two[0], two[0], two[1]])
    two = pieces(105, next(ports), 2000, 1208)
    overlap = ip(IN, OUT, 17, bytes(808), ident=105, frag=1200 // 8)
    send("the second overlaps the first", [two[0], overlap, two[1]])
    two = pieces(106, next(ports), 2000, 1208)
    send("interleaved with a whole packet", [two[0], ask(next(ports)), two[1]])
    t.lan("fragments, one that is first and last nowhere", out(ip(IN, OUT, 17, bytes(1208), ident=107, frag=0x2000 | 100)))
    send("nobody asked for", pieces(108, next(ports), 2000, 1208, OUT, IN), t.wan, back)
    late = pieces(109, next(ports), 2000, 1208)
    t.lan("fragments, incomplete: 1 of 2", out(late[0]))
    t.wait(16)
    t.lan("fragments, 16 s later: 2 of 2", out(late[1]))
    t.lan("fragments, beyond 65,535 bytes", out(ip(IN, OUT, 17, bytes(1208), ident=110, frag=0x1FFF)))
    t.lan("fragments, an echo request: 1 of 2", out(ip(IN, OUT, 1, (whole := icmp(8, 0, echo(40, 1), bytes(1800)))[:1208], ident=111, frag=0x2000)))
    t.lan("fragments, an echo request: 2 of 2", out(ip(IN, OUT, 1, whole[1208:], ident=111, frag=1208 // 8)))
    t.lan("a fragment of 8 bytes with the ports of TCP only", out(ip(IN, OUT, 6, struct.pack(">HHI", next(ports), 80, 1), ident=112, frag=0x2000)))
    t.lan("fragments with the don't-fragment flag", out(ip(IN, OUT, 17, bytes(1208), ident=113, frag=0x6000)))


PARTS = [datagrams, pings, errors, handshakes, windows, endings, fragments]
