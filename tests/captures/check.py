"""Whether recorded frames are what a cable would carry.

In: frames as `(microseconds, bytes)`. Out: nothing, or the program ends and says which frame is wrong. Never used on
`odd`, whose frames are wrong on purpose.
"""
import struct
import sys

LONGEST = 1514


def ones_sum(data):
    """The 16-bit one's complement sum of the internet protocols; 0xffff where a checksum inside is right."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def checksums_right(frame):
    """Whether every checksum of an IPv4 or IPv6 packet holds (those of fragments but for the header's)."""
    kind, ip = frame[12:14], frame[14:]
    if kind == b"\x08\x00":
        header, length = (ip[0] & 15) * 4, struct.unpack(">H", ip[2:4])[0]
        if ones_sum(ip[:header]) != 0xFFFF:
            return False
        if struct.unpack(">H", ip[6:8])[0] & 0x3FFF:
            return True
        proto, body, pseudo = ip[9], ip[header:length], ip[12:20]
    elif kind == b"\x86\xdd":
        proto, body, pseudo = ip[6], ip[40 : 40 + struct.unpack(">H", ip[4:6])[0]], ip[8:40]
        if proto == 0:  # hop-by-hop, before MLD
            proto, body = body[0], body[(body[1] + 1) * 8 :]
    else:
        return True
    if proto == 1:
        return ones_sum(body) == 0xFFFF
    if proto in (6, 17, 58):
        return ones_sum(pseudo + struct.pack(">HH", proto, len(body)) + body) == 0xFFFF
    return True


def frames(name, recorded):
    """Ends the program at the first frame that is too long or has a wrong checksum, and when there is none."""
    if not recorded:
        sys.exit(f"{name}: nothing was recorded")
    for i, (_, frame) in enumerate(recorded):
        if len(frame) > LONGEST:
            sys.exit(f"{name}: frame {i} has {len(frame)} bytes: segmentation offload is on")
        if not checksums_right(frame):
            sys.exit(f"{name}: frame {i} has a wrong checksum: checksum offload is on")


def separate(lan, wan):
    """Gives each frame a millisecond of its own, later frames moved back where need be.

    So the order across both files is the same for every reader, also for one that counts in milliseconds.
    """
    order = sorted([(t, i, side) for side in (lan, wan) for i, (t, _) in enumerate(side)], key=lambda x: x[0])
    free = 0
    for stamp, i, side in order:
        stamp = max(stamp, free)
        side[i] = (stamp, side[i][1])
        free = stamp // 1000 * 1000 + 1000
