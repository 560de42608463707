#!/usr/bin/env python3
"""Writes `odd/` and `runts/`: frames that are malformed, rare or out of order, at fixed times.

usage: odd.py [--check]       with --check: says whether the files are what this script writes, and writes nothing

Out, in each folder: `lan.pcap`, `wan.pcap` and `frames.txt`, which names each frame in the order of their stamps. The script holds no
expectation: what a switch does with the frames is what the tests are about.
"""
import os
import sys

import odd_connections
import odd_headers
import pcapfile

HERE = os.path.dirname(os.path.abspath(__file__))
START = 1_700_000_000_000_000
STEP = 20_000


class Tape:
    """Frames of both sides under one clock that moves 20 ms a frame."""

    def __init__(self):
        self.now, self.lan_frames, self.wan_frames, self.lines = START, [], [], []

    def wait(self, seconds):
        """Lets time pass."""
        self.now += int(seconds * 1_000_000)

    def lan(self, note, frame):
        """Adds a frame that the inside sends."""
        self._add("lan", self.lan_frames, note, frame)

    def wan(self, note, frame):
        """Adds a frame that the outside sends."""
        self._add("wan", self.wan_frames, note, frame)

    def _add(self, side, frames, note, frame):
        seconds = (self.now - START) / 1_000_000
        self.lines.append(f"{len(self.lines):3}  {seconds:7.2f} s  {side}  {len(frame):4} B  {note}")
        frames.append((self.now, frame))
        self.now += STEP


    def files(self):
        """The three files that hold it, by name."""
        return {"lan.pcap": pcapfile.pack(self.lan_frames), "wan.pcap": pcapfile.pack(self.wan_frames),
                "frames.txt": ("\n".join(self.lines) + "\n").encode()}


def main():
    """Writes or checks the files of both folders."""
    for folder, parts in (("odd", odd_headers.PARTS + odd_connections.PARTS), ("runts", [odd_headers.runts])):
        tape = Tape()
        for part in parts:
            part(tape)
        os.makedirs(f"{HERE}/{folder}", exist_ok=True)
        for name, content in tape.files().items():
            path = f"{HERE}/{folder}/{name}"
            if "--check" not in sys.argv:
                with open(path, "wb") as f:
                    f.write(content)
            elif not os.path.exists(path) or open(path, "rb").read() != content:
                sys.exit(f"{folder}/{name} is not what odd.py writes: run tests/captures/odd.py")
        print(f"{folder}: {len(tape.lan_frames)} frames from lan, {len(tape.wan_frames)} from wan")


if __name__ == "__main__":
    main()
