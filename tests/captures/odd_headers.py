"""Odd frames, first half: what a parser makes of headers. Each part names the rules of parsing that it is about.

In: a tape to add to. Never depends on connections that another part has made: ports tell the parts apart.
"""
import struct

from frames import (ACK, ARP, BROADCAST, CWR, ECE, FIN, IP, IP6, LAN_MAC, MPLS, NS, PSH, QINQ, RARP, RST, SYN, URG, VLAN,
                    WAN_MAC, arp, echo, eth, icmp, icmp6, ip, ip6, mac, sctp, tag, tcp, udp)

IN, OUT, IN6, OUT6 = "10.0.0.10", "198.51.100.80", "fd00:a::10", "2001:db8::80"
SNAP = b"\xaa\xaa\x03\x00\x00\x00"
ports = iter(range(20_000, 30_000))


def asks(**wrong):
    """A fresh UDP question from inside, as an IPv4 packet; `wrong` goes to `ip`."""
    return ip(IN, OUT, 17, udp(IN, OUT, next(ports), 53, b"question"), **wrong)


def runts(t):
    """Frames without a whole Ethernet header. They have a folder of their own: the comparison tool refuses them."""
    for size in (1, 6, 12, 13):
        t.lan("no whole Ethernet header", eth(IP, asks())[:size])
        t.wan("no whole Ethernet header", eth(IP, asks(), src=WAN_MAC, dst=LAN_MAC)[:size])


def ethernet(t):
    """The shortest frames, lengths, LLC and SNAP, unknown types."""
    t.lan("14 bytes: an Ethernet header of IPv4 and nothing else", eth(IP, b"", pad=False))
    t.lan("14 bytes: an Ethernet header of ARP and nothing else", eth(ARP, b"", pad=False))
    t.lan("IPv4 in 42 bytes, not padded to 60", eth(IP, asks()[:28], pad=False))
    t.lan("IPv4 behind LLC/SNAP", eth(8 + 36, SNAP + struct.pack(">H", IP) + asks()))
    t.lan("ARP behind LLC/SNAP", eth(36, SNAP + struct.pack(">H", ARP) + arp(1, LAN_MAC, IN, "00:" * 5 + "00", "10.0.0.1"), dst=BROADCAST))
    t.lan("LLC/SNAP with another OUI", eth(44, b"\xaa\xaa\x03\x00\x00\x0c" + struct.pack(">H", IP) + asks()))
    t.lan("LLC/SNAP whose type is below 0x600", eth(44, SNAP + struct.pack(">H", 0x5FF) + asks()))
    t.lan("LLC/SNAP cut after 7 bytes", eth(7, SNAP + b"\x08", pad=False))
    t.lan("LLC: spanning tree", eth(38, b"\x42\x42\x03" + bytes(35), dst="01:80:c2:00:00:00"))
    t.lan("length 0x5ff, no LLC", eth(0x5FF, asks()))
    for kind, what in ((0x600, "the smallest EtherType"), (0x88CC, "LLDP"), (0x88B5, "local experiments"), (0x888E, "EAPOL"),
                       (0x8864, "PPPoE"), (0x894F, "NSH of version 1"), (0xFFFF, "the greatest EtherType")):
        t.lan(f"EtherType {kind:#06x}: {what}", eth(kind, b"\x40" + bytes(45)))
    t.lan("IPv4 to the MAC of itself", eth(IP, asks(), dst=LAN_MAC))
    t.lan("IPv4 from a multicast MAC", eth(IP, asks(), src="03:00:00:00:00:0a"))
    t.lan("IPv4 with 1200 bytes of padding", eth(IP, asks()).ljust(1260, b"\xa5"))


def vlan(t):
    """One tag, more tags, DEI, priority tags, cut tags."""
    t.lan("tag 100", eth(VLAN, tag(100, IP, asks())))
    t.lan("tag 100, PCP 5 and DEI", eth(VLAN, tag(100, IP, asks(), pcp=5, dei=1)))
    t.lan("priority tag: VID 0, PCP 3", eth(VLAN, tag(0, IP, asks(), pcp=3)))
    t.lan("tag 4095", eth(VLAN, tag(4095, IP, asks())))
    t.lan("tag 100 of TPID 0x88a8", eth(QINQ, tag(100, IP, asks())))
    t.lan("TPID 0x9100 is no tag", eth(0x9100, tag(100, IP, asks())))
    t.lan("two tags, 0x88a8 and 0x8100", eth(QINQ, tag(100, VLAN, tag(200, IP, asks()))))
    t.lan("two tags, both 0x8100", eth(VLAN, tag(100, VLAN, tag(200, IP, asks()))))
    t.lan("three tags", eth(QINQ, tag(1, VLAN, tag(2, VLAN, tag(3, IP, asks())))))
    for size in (15, 16, 17, 18):
        t.lan(f"tag cut at {size} bytes", eth(VLAN, tag(100, IP, b""), pad=False)[:size])
    t.lan("LLC/SNAP with IPv4 behind a tag", eth(VLAN, tag(100, 44, SNAP + struct.pack(">H", IP) + asks())))
    t.lan("a tagged frame of 1518 bytes", eth(VLAN, tag(100, IP, ip(IN, OUT, 17, udp(IN, OUT, next(ports), 53, bytes(1472))))))
    who = arp(1, LAN_MAC, IN, "00:00:00:00:00:00", "10.0.0.1")
    t.lan("ARP behind tag 100", eth(VLAN, tag(100, ARP, who), dst=BROADCAST))
    t.lan("ARP behind a priority tag", eth(VLAN, tag(0, ARP, who, pcp=7), dst=BROADCAST))
    t.lan("ARP behind a priority tag with DEI", eth(VLAN, tag(0, ARP, who, dei=1), dst=BROADCAST))
    t.lan("ARP behind two tags", eth(QINQ, tag(100, VLAN, tag(200, ARP, who)), dst=BROADCAST))


def mpls(t):
    """Label stacks."""
    def stack(*labels):
        return b"".join(struct.pack(">I", label << 12 | (i == len(labels) - 1) << 8 | 64) for i, label in enumerate(labels))

    t.lan("MPLS, one label", eth(MPLS, stack(16) + asks()))
    t.lan("MPLS, four labels", eth(MPLS, stack(16, 17, 18, 19) + asks()))
    t.lan("MPLS, no bottom of stack", eth(MPLS, struct.pack(">I", 16 << 12 | 64) * 3, pad=False))
    t.lan("MPLS multicast", eth(0x8848, stack(16) + asks()))
    t.lan("MPLS, cut in the label", eth(MPLS, b"\0\1", pad=False))


def ipv4(t):
    """Lengths, versions, checksums, options, padding."""
    packet = asks()
    t.lan("IPv4, 19 bytes", eth(IP, packet[:19], pad=False))
    t.lan("IPv4, a header and nothing else", eth(IP, ip(IN, OUT, 17, b""), pad=False))
    t.lan("IHL 4", eth(IP, asks(ihl=4)))
    t.lan("IHL 0", eth(IP, asks(ihl=0)))
    t.lan("IHL 15: beyond the end of the frame", eth(IP, asks(ihl=15), pad=False))
    t.lan("total length beyond the end of the frame", eth(IP, asks(length=1000)))
    t.lan("total length 19", eth(IP, asks(length=19)))
    t.lan("total length 0", eth(IP, asks(length=0)))
    t.lan("total length ends before the ports", eth(IP, asks(length=22)))
    t.lan("total length ends before the header with options does", eth(IP, asks(options=b"\1" * 8, length=24)))
    t.lan("version 0", eth(IP, asks(version=0)))
    t.lan("version 5", eth(IP, asks(version=5)))
    t.lan("version 6 under the EtherType of IPv4", eth(IP, asks(version=6)))
    t.lan("header checksum wrong", eth(IP, asks(check=0x1234)))
    t.lan("header checksum 0", eth(IP, asks(check=0)))
    t.lan("TTL 0", eth(IP, asks(ttl=0)))
    t.lan("TTL 1", eth(IP, asks(ttl=1)))
    t.lan("DSCP 46 and ECN 3", eth(IP, asks(tos=46 << 2 | 3)))
    t.lan("options: four no-operations", eth(IP, asks(options=b"\1\1\1\1")))
    t.lan("options: 40 bytes, record route", eth(IP, asks(options=b"\7\x27\4" + bytes(36))))
    t.lan("options: router alert", eth(IP, asks(options=b"\x94\4\0\0")))
    t.lan("options: one of length 0", eth(IP, asks(options=b"\x44\0\0\0")))
    t.lan("from 0.0.0.0 to a broadcast address", eth(IP, ip("0.0.0.0", "255.255.255.255", 17, udp("0.0.0.0", "255.255.255.255", 68, 67, bytes(240))), dst=BROADCAST))
    t.lan("to a multicast address", eth(IP, ip(IN, "224.0.0.251", 17, udp(IN, "224.0.0.251", 5353, 5353, b"mdns")), dst="01:00:5e:00:00:fb"))
    t.lan("from an address to itself", eth(IP, ip(IN, IN, 17, udp(IN, IN, next(ports), 53, b"land"))))
    t.lan("the reserved flag", eth(IP, asks(frag=0x8000)))
    t.lan("do not fragment", eth(IP, asks(frag=0x4000)))


def transport(t):
    """Ports of UDP and TCP: short, zero, wrong lengths and checksums; flags that make no sense."""
    def u(what, **wrong):
        t.lan(f"UDP, {what}", eth(IP, ip(IN, OUT, 17, udp(IN, OUT, next(ports), 53, b"question", **wrong))))

    u("checksum 0: not computed", check=0)
    u("checksum wrong", check=0x1234)
    u("length 7", length=7)
    u("length 0", length=0)
    u("length beyond the packet", length=100)
    u("length shorter than the packet", length=12)
    t.lan("UDP, no data", eth(IP, ip(IN, OUT, 17, udp(IN, OUT, next(ports), 53))))
    t.lan("UDP, 4 bytes", eth(IP, ip(IN, OUT, 17, udp(IN, OUT, next(ports), 53)[:4])))
    t.lan("UDP, from port 0", eth(IP, ip(IN, OUT, 17, udp(IN, OUT, 0, 53, b"q"))))
    t.lan("UDP, to port 0", eth(IP, ip(IN, OUT, 17, udp(IN, OUT, next(ports), 0, b"q"))))
    t.lan("UDP-Lite", eth(IP, ip(IN, OUT, 136, udp(IN, OUT, next(ports), 53, b"q"))))

    def s(what, flags, **wrong):
        t.lan(f"TCP, {what}", eth(IP, ip(IN, OUT, 6, tcp(IN, OUT, next(ports), 80, flags, **wrong))))

    s("SYN with a wrong checksum", SYN, check=0x1234)
    s("data offset 4", SYN, offset=4)
    s("data offset beyond the packet", SYN, offset=15)
    s("no flags (null scan)", 0)
    s("FIN, PSH and URG (xmas scan)", FIN | PSH | URG)
    s("all flags", 0xFFF)
    s("SYN and FIN", SYN | FIN)
    s("SYN and RST", SYN | RST)
    s("SYN and ACK, first", SYN | ACK, ack=1)
    s("FIN without ACK", FIN)
    s("FIN and ACK, first", FIN | ACK, ack=1)
    s("RST, first", RST)
    s("RST and ACK, first", RST | ACK, ack=1)
    s("ACK, first", ACK, ack=1)
    s("data, first", PSH | ACK, ack=1, data=b"in the middle")
    s("URG without ACK", URG)
    s("SYN with ECE, CWR and NS", SYN | ECE | CWR | NS)
    s("SYN with data", SYN, data=b"fast open")
    s("SYN with an option of length 0", SYN, options=b"\2\0\5\xb4\3\0\0\0")
    s("SYN with an option beyond the header", SYN, options=b"\2\4\5\xb4\3\x20\7\0")
    s("SYN with window scale 15", SYN, options=b"\3\3\17")
    cut = tcp(IN, OUT, next(ports), 80, SYN)
    t.lan("TCP, 12 bytes", eth(IP, ip(IN, OUT, 6, cut[:12])))
    t.lan("TCP, 19 bytes", eth(IP, ip(IN, OUT, 6, cut[:19])))
    t.lan("TCP, from port 0", eth(IP, ip(IN, OUT, 6, tcp(IN, OUT, 0, 80, SYN))))
    t.lan("TCP, to port 0", eth(IP, ip(IN, OUT, 6, tcp(IN, OUT, next(ports), 0, SYN))))
    init = b"\1\0\0\x14\0\0\0\1\0\1\0\0\0\1\0\1\0\0\0\1"
    t.lan("SCTP, INIT", eth(IP, ip(IN, OUT, 132, sctp(next(ports), 9899, init))))
    t.lan("SCTP, wrong CRC", eth(IP, ip(IN, OUT, 132, sctp(next(ports), 9899, init, check=1))))
    t.lan("SCTP, 8 bytes", eth(IP, ip(IN, OUT, 132, sctp(next(ports), 9899, b"")[:8])))
    t.lan("SCTP, a chunk beyond the end", eth(IP, ip(IN, OUT, 132, sctp(next(ports), 9899, b"\0\3\1\0" + bytes(12)))))


def other_protocols(t):
    """What has no ports."""
    for proto, body, what in ((2, b"\x16\0\x09\xff\xe0\0\0\xfb", "IGMP"), (47, b"\0\0\x08\0" + asks(), "GRE"),
                              (4, asks(), "IPv4 in IPv4"), (41, ip6(IN6, OUT6, 59, b""), "IPv6 in IPv4"),
                              (50, bytes(24), "ESP"), (51, b"\x3b\4" + bytes(22), "AH"), (89, bytes(24), "OSPF"),
                              (112, bytes(20), "VRRP"), (0, bytes(8), "protocol 0"), (255, bytes(8), "protocol 255")):
        t.lan(f"{what}, out", eth(IP, ip(IN, OUT, proto, body)))
        t.wan(f"{what}, back", eth(IP, ip(OUT, IN, proto, body), src=WAN_MAC, dst=LAN_MAC))
    t.wan("IP protocol 48 that nobody asked for", eth(IP, ip(OUT, IN, 48, bytes(20)), src=WAN_MAC, dst=LAN_MAC))


def ipv6(t):
    """Lengths and extension headers. (The firewall's rules speak of IPv4 only.)"""
    q = udp(IN6, OUT6, next(ports), 53, b"question")

    def chain(what, proto, body, **wrong):
        t.lan(f"IPv6, {what}", eth(IP6, ip6(IN6, OUT6, proto, body, **wrong)))

    def ext(kind, words=0):
        return bytes([kind, words]) + b"\1\4\0\0\0\0" + bytes(8 * words)

    chain("UDP", 17, q)
    chain("UDP without checksum", 17, udp(IN6, OUT6, 1, 53, b"q", check=0))
    t.lan("IPv6, 39 bytes", eth(IP6, ip6(IN6, OUT6, 17, q)[:39], pad=False))
    chain("a payload longer than the frame", 17, q, length=1000)
    chain("payload length 0 (jumbo)", 17, q, length=0)
    chain("payload length ends before the ports", 17, q, length=2)
    chain("hop-by-hop, then UDP", 0, ext(17) + q)
    chain("hop-by-hop, routing, destination, then UDP", 0, ext(43) + ext(60) + ext(17) + q)
    chain("AH, then UDP", 51, b"\x11\4" + bytes(22) + q)
    chain("twenty destination headers, then UDP", 60, ext(60) * 19 + ext(17) + q)
    chain("a destination header beyond the end", 60, ext(17, 200)[:8] + q)
    chain("an extension header of 4 bytes", 60, b"\x11\0\1\0")
    chain("ESP", 50, bytes(24))
    chain("no next header", 59, b"")
    chain("mobility", 135, ext(59))
    chain("first fragment", 44, b"\x11\0" + struct.pack(">HI", 1, 7) + q)
    chain("later fragment", 44, b"\x11\0" + struct.pack(">HI", 16 << 3, 7) + bytes(16))
    chain("atomic fragment", 44, b"\x11\0" + struct.pack(">HI", 0, 8) + q)
    chain("atomic fragment with reserved bits", 44, b"\x11\0" + struct.pack(">HI", 6, 9) + q)
    chain("TCP, SYN", 6, tcp(IN6, OUT6, next(ports), 80, SYN))
    chain("echo request", 58, icmp6(IN6, OUT6, 128, 0, echo(1, 1), b"ping"))
    t.wan("IPv6, echo request from outside", eth(IP6, ip6(OUT6, IN6, 58, icmp6(OUT6, IN6, 128, 0, echo(1, 1))), src=WAN_MAC, dst=LAN_MAC))
    t.lan("version 4 under the EtherType of IPv6", eth(IP6, asks()))


def discovery(t):
    """ND and MLD: options twice, of length 0, codes other than 0, cut."""
    node, sll = "ff02::1:ff00:1", b"\1\1" + mac(LAN_MAC)
    target = b"\xfd\0\0\x0a" + bytes(11) + b"\1"

    def nd(what, kind, code, data, dst=node):
        t.lan(f"ND, {what}", eth(IP6, ip6("fe80::a", dst, 58, icmp6("fe80::a", dst, kind, code, data=data), hops=255), dst="33:33:ff:00:00:01"))

    nd("solicitation", 135, 0, target + sll)
    nd("solicitation without option", 135, 0, target)
    nd("solicitation, the option twice", 135, 0, target + sll + sll)
    nd("solicitation, an option of length 0", 135, 0, target + b"\1\0" + mac(LAN_MAC))
    nd("solicitation, code 1", 135, 1, target + sll)
    nd("solicitation, target cut", 135, 0, target[:8])
    nd("advertisement", 136, 0, target + b"\2\1" + mac(LAN_MAC), "ff02::1")
    nd("router solicitation", 133, 0, sll, "ff02::2")
    nd("router advertisement", 134, 0, bytes(8) + sll, "ff02::1")
    nd("redirect", 137, 0, target * 2, "ff02::1")
    t.lan("MLD, report", eth(IP6, ip6("fe80::a", "ff02::16", 0, b"\x3a\0\5\2\0\0\1\0" + icmp6("fe80::a", "ff02::16", 143, 0, b"\0\0\0\1", b"\4\0\0\0" + bytes(16)), hops=1), dst="33:33:00:00:00:16"))
    t.lan("ICMPv6, 4 bytes", eth(IP6, ip6("fe80::a", node, 58, icmp6("fe80::a", node, 135, 0)[:4]), dst="33:33:ff:00:00:01"))


def resolution(t):
    """ARP and RARP, and what the learning switch behind the firewall's second rule makes of addresses."""
    none = "00:00:00:00:00:00"

    def a(side, what, op, sha, spa, tha, tpa, src=LAN_MAC, dst=BROADCAST, kind=ARP, **wrong):
        getattr(t, side)(f"ARP, {what}", eth(kind, arp(op, sha, spa, tha, tpa, **wrong), src=src, dst=dst))

    a("lan", "request", 1, LAN_MAC, IN, none, "10.0.0.1")
    a("wan", "reply to a learned address", 2, WAN_MAC, "10.0.0.1", LAN_MAC, IN, src=WAN_MAC, dst=LAN_MAC)
    a("lan", "request to a learned address", 1, LAN_MAC, IN, none, "10.0.0.1", dst=WAN_MAC)
    a("lan", "reply to an address learned on the same side", 2, LAN_MAC, IN, LAN_MAC, IN, src="02:00:00:00:00:0b", dst=LAN_MAC)
    a("lan", "reply from an address to itself", 2, LAN_MAC, IN, LAN_MAC, IN, dst=LAN_MAC)
    a("lan", "reply to an unknown address", 2, LAN_MAC, IN, none, "10.0.0.9", dst="02:00:00:00:00:99")
    a("lan", "gratuitous", 1, LAN_MAC, IN, none, IN)
    a("lan", "probe", 1, LAN_MAC, "0.0.0.0", none, IN)
    a("lan", "opcode 0", 0, LAN_MAC, IN, none, "10.0.0.1")
    a("lan", "opcode 257", 257, LAN_MAC, IN, none, "10.0.0.1")
    a("lan", "hardware type 6", 1, LAN_MAC, IN, none, "10.0.0.1", hrd=6)
    a("lan", "protocol type IPv6", 1, LAN_MAC, IN, none, "10.0.0.1", pro=IP6)
    a("lan", "hardware length 8", 1, LAN_MAC, IN, none, "10.0.0.1", hln=8)
    a("lan", "RARP", 3, LAN_MAC, "0.0.0.0", LAN_MAC, "0.0.0.0", kind=RARP)
    a("lan", "from a multicast address", 1, "03:00:00:00:00:0a", IN, none, "10.0.0.1", src="03:00:00:00:00:0a")
    a("lan", "from the zero address", 1, none, IN, none, "10.0.0.1", src=none)
    a("lan", "to a reserved group address", 1, LAN_MAC, IN, none, "10.0.0.1", dst="01:80:c2:00:00:0e")
    a("lan", "to a group address that is not reserved", 1, LAN_MAC, IN, none, "10.0.0.1", dst="01:80:c2:00:00:10")
    t.lan("ARP, 27 bytes", eth(ARP, arp(1, LAN_MAC, IN, none, "10.0.0.1")[:27], dst=BROADCAST, pad=False))
    t.lan("ARP, 28 bytes, not padded", eth(ARP, arp(1, LAN_MAC, IN, none, "10.0.0.1"), dst=BROADCAST, pad=False))
    a("wan", "the inside's address moves outside", 1, LAN_MAC, IN, none, "10.0.0.1", src=LAN_MAC)
    a("wan", "reply to the address that moved", 2, WAN_MAC, "10.0.0.1", LAN_MAC, IN, src=WAN_MAC, dst=LAN_MAC)
    a("lan", "and it moves back", 1, LAN_MAC, IN, none, "10.0.0.1")
    a("wan", "reply to where it is now", 2, WAN_MAC, "10.0.0.1", LAN_MAC, IN, src=WAN_MAC, dst=LAN_MAC)


PARTS = [ethernet, vlan, mpls, ipv4, transport, other_protocols, ipv6, discovery, resolution]
