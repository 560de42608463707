"""Frames from their fields: right unless a caller asks for something wrong.

In: fields as Python values, addresses as text. Out: bytes. Lengths and checksums are filled in; a keyword of the
same name overrides one. Never keeps state.
"""
import ipaddress
import struct

from check import ones_sum

LAN_MAC, WAN_MAC, BROADCAST = "02:00:00:00:00:0a", "02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"
IP, ARP, RARP, VLAN, QINQ, IP6, MPLS = 0x0800, 0x0806, 0x8035, 0x8100, 0x88A8, 0x86DD, 0x8847
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, NS = (1 << n for n in range(9))


def mac(text):
    """Six bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))


def address(text):
    """The bytes of an IPv4 or IPv6 address."""
    return ipaddress.ip_address(text).packed


def checksum(data):
    """The internet checksum."""
    return ~ones_sum(data) & 0xFFFF


def eth(kind, payload, src=LAN_MAC, dst=WAN_MAC, pad=True):
    """A frame, padded to 60 bytes as a network card would unless `pad` is false."""
    frame = mac(dst) + mac(src) + struct.pack(">H", kind) + payload
    return frame.ljust(60, b"\0") if pad else frame


def tag(vid, kind, payload, pcp=0, dei=0):
    """What follows a VLAN's TPID: the TCI, the next EtherType and the payload."""
    return struct.pack(">HH", pcp << 13 | dei << 12 | vid, kind) + payload


def ip(src, dst, proto, payload, options=b"", **wrong):
    """An IPv4 packet. `wrong`: version, ihl, tos, length, ident, frag (flags and offset), ttl, check."""
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    get = wrong.get
    ihl = get("ihl", 5 + len(options) // 4)
    length = get("length", 20 + len(options) + len(payload))

    def header(check):
        return struct.pack(">BBHHHBBH", get("version", 4) << 4 | ihl, get("tos", 0), length, get("ident", 1),
                           get("frag", 0), get("ttl", 64), proto, check) + address(src) + address(dst) + options

    return header(get("check", checksum(header(0)))) + payload


def ip6(src, dst, proto, payload, **wrong):
    """An IPv6 packet. `wrong`: length, hops."""
    return struct.pack(">IHBB", 6 << 28, wrong.get("length", len(payload)), proto, wrong.get("hops", 64)) \
        + address(src) + address(dst) + payload


def over(src, dst, proto, body, at):
    """`body` with the checksum that covers the pseudo-header written at offset `at`."""
    pseudo = address(src) + address(dst) + struct.pack(">HH", proto, len(body))
    return body[:at] + struct.pack(">H", checksum(pseudo + body) or 0xFFFF) + body[at + 2 :]


def udp(src, dst, sport, dport, data=b"", **wrong):
    """A UDP datagram for a packet from `src` to `dst`. `wrong`: length, check."""
    body = struct.pack(">HHHH", sport, dport, wrong.get("length", 8 + len(data)), 0) + data
    if "check" in wrong:
        return body[:6] + struct.pack(">H", wrong["check"]) + body[8:]
    return over(src, dst, 17, body, 6)


def tcp(src, dst, sport, dport, flags, seq=1000, ack=0, data=b"", options=b"", **wrong):
    """A TCP segment for a packet from `src` to `dst`. `wrong`: offset (in words), window, check."""
    options = options.ljust(-(-len(options) // 4) * 4, b"\0")
    offset = wrong.get("offset", 5 + len(options) // 4)
    body = struct.pack(">HHIIHHHH", sport, dport, seq % 2**32, ack % 2**32, offset << 12 | flags,
                       wrong.get("window", 8192), 0, 0) + options + data
    if "check" in wrong:
        return body[:16] + struct.pack(">H", wrong["check"]) + body[18:]
    return over(src, dst, 6, body, 16)


def icmp(kind, code, rest=b"\0\0\0\0", data=b"", **wrong):
    """An ICMP message; `rest` is the second word. `wrong`: check."""
    body = struct.pack(">BBH", kind, code, 0) + rest + data
    return body[:2] + struct.pack(">H", wrong.get("check", checksum(body))) + body[4:]


def icmp6(src, dst, kind, code, rest=b"\0\0\0\0", data=b""):
    """An ICMPv6 message for a packet from `src` to `dst`."""
    return over(src, dst, 58, struct.pack(">BBH", kind, code, 0) + rest + data, 2)


def echo(ident, seq):
    """The second word of an ICMP echo."""
    return struct.pack(">HH", ident, seq)


def sctp(sport, dport, chunks, **wrong):
    """An SCTP packet. `wrong`: check."""
    def crc32c(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF

    head = struct.pack(">HHI", sport, dport, 0)
    return head + struct.pack("<I", wrong.get("check", crc32c(head + bytes(4) + chunks))) + chunks


def arp(op, sha, spa, tha, tpa, hrd=1, pro=IP, hln=6, pln=4):
    """An ARP or RARP message."""
    return struct.pack(">HHBBH", hrd, pro, hln, pln, op) + mac(sha) + address(spa) + mac(tha) + address(tpa)
