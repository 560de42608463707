"""Classic capture files: microseconds, little-endian, Ethernet.

In: a path, or frames as `(microseconds, bytes)`. Out: the other one.
Never reads pcapng and never changes a frame.
"""
import struct

MAGIC = 0xA1B2C3D4
ETHERNET = 1
SNAPLEN = 262144


def read(path):
    """All frames of a capture, as a list of (microseconds, bytes)."""
    with open(path, "rb") as f:
        data = f.read()
    magic, _, _, _, _, _, link = struct.unpack_from("<IHHiIII", data)
    if magic != MAGIC or link != ETHERNET:
        raise ValueError(f"{path}: not a little-endian microsecond capture of Ethernet")
    frames, at = [], 24
    while at + 16 <= len(data):
        sec, usec, kept, length = struct.unpack_from("<IIII", data, at)
        if kept != length or at + 16 + kept > len(data):
            raise ValueError(f"{path}: frame {len(frames)} is cut")
        frames.append((sec * 1_000_000 + usec, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return frames


def pack(frames):
    """The bytes of a capture file that holds `frames`."""
    out = [struct.pack("<IHHiIII", MAGIC, 2, 4, 0, 0, SNAPLEN, ETHERNET)]
    for stamp, frame in frames:
        sec, usec = divmod(stamp, 1_000_000)
        out.append(struct.pack("<IIII", sec, usec, len(frame), len(frame)) + frame)
    return b"".join(out)


def write(path, frames):
    """Writes `frames` to `path`."""
    with open(path, "wb") as f:
        f.write(pack(frames))
