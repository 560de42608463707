#!/usr/bin/env python3
"""Small servers and clients for what curl, dig, ping and ssh do not do: resets, half-closed and late answers.

usage: peers.py SERVER|CLIENT [ARGUMENT...]      servers print `listening` and run until they are killed

Never decides what a scenario is; `scenarios.py` does.
"""
import http.server
import socket
import socketserver
import struct
import sys
import threading
import time

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def reset(sock):
    """Ends a TCP connection by RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    sock.close()


class Web(http.server.BaseHTTPRequestHandler):
    """`/N` answers N bytes, `/reset` ends half-way by RST, `/slow` pauses, POST answers the length it got."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "web/1", ""

    def log_message(self, *_):
        pass

    def answer(self, body, chunks=1, pause=0.0):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        size = -(-len(body) // chunks) or 1
        for at in range(0, len(body), size):
            self.wfile.write(body[at : at + size])
            time.sleep(pause)

    def do_GET(self):
        if self.path == "/reset":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"half " * 100)
            time.sleep(0.2)
            self.close_connection = True
            reset(self.connection)
        elif self.path == "/slow":
            self.answer(b"one two three four " * 20, chunks=4, pause=0.5)
        elif self.path[1:].isdigit():
            line = b"0123456789 abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ\n"
            self.answer((line * (int(self.path[1:]) // len(line) + 1))[: int(self.path[1:])])
        else:
            self.send_error(404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(b"%d bytes\n" % len(body))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """One thread a connection; a connection that was reset is nothing to report."""

    daemon_threads = True

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "web", self.server_address[1]

    def handle_error(self, *_):
        pass


class Server6(Server):
    """The same over IPv6."""

    address_family = socket.AF_INET6


def web(address, port):
    """An HTTP server, see `Web`."""
    server = (Server6 if ":" in address else Server)((address, int(port)), Web)
    print("listening", flush=True)
    server.serve_forever()


def talk(address, port):
    """A TCP server: answers each line; after the client's FIN it goes on for a while and then closes."""
    server = socket.create_server((address, int(port)))
    print("listening", flush=True)

    def serve(sock):
        with sock, sock.makefile("rwb", buffering=0) as lines:
            for line in lines:
                lines.write(b"you said " + line)
            for n in range(3):
                time.sleep(0.4)
                lines.write(b"still here %d\n" % n)

    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


def late(address, port):
    """A UDP server: answers each datagram after as many seconds as its text says."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((address, int(port)))
    print("listening", flush=True)
    while True:
        text, peer = sock.recvfrom(2000)
        threading.Timer(float(text), sock.sendto, (b"after " + text, peer)).start()


def converse(address, port, *pauses):
    """A TCP client: a line, a pause, a line…; then half-closes and reads to the end."""
    with socket.create_connection((address, int(port))) as sock, sock.makefile("rwb", buffering=0) as lines:
        for pause in pauses:
            time.sleep(float(pause))
            lines.write(b"after a pause of %s s\n" % pause.encode())
            lines.readline()
        sock.shutdown(socket.SHUT_WR)
        for _ in lines:
            pass


def abort(address, port, path):
    """An HTTP client that ends by RST as soon as the answer begins."""
    sock = socket.create_connection((address, int(port)))
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    sock.recv(100)
    reset(sock)


def knock(source, address, *ports):
    """A port scan: one connection attempt each, given up after 1.2 s (so with one SYN sent again)."""
    for port in ports:
        sock = socket.socket()
        sock.settimeout(1.2)
        sock.bind((source, 0))
        try:
            sock.connect((address, int(port)))
            sock.sendall(b"hello\n")
        except OSError:
            pass
        sock.close()


def say(source, address, port, *texts):
    """A UDP client: a datagram for each text from one port; waits for no answer between them."""
    host, _, own = source.partition(":")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, int(own or 0)))
    for text in texts:
        try:
            sock.sendto(text.encode(), (address, int(port)))
        except OSError:
            pass  # the answer to an earlier one: port unreachable
        time.sleep(0.1)


def ask(source, address, port, text, patience):
    """A UDP client: one datagram, and waits `patience` seconds for an answer (none is no failure)."""
    host, _, own = source.partition(":")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, int(own or 0)))
    sock.settimeout(float(patience))
    sock.connect((address, int(port)))
    try:
        sock.send(text.encode())
        sock.recv(2000)
    except OSError:
        pass


def trace(address, hops):
    """A UDP traceroute: two probes for each TTL up to `hops`, to the usual ports."""
    for ttl in range(1, int(hops) + 1):
        for probe in range(2):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            sock.sendto(b"@" * 32, (address, 33434 + 2 * ttl + probe))
            time.sleep(0.05)


if __name__ == "__main__":
    PARTS = {f.__name__: f for f in (web, talk, late, converse, abort, knock, say, ask, trace)}
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit(__doc__)
    try:
        PARTS[sys.argv[1]](*sys.argv[2:])
    except KeyboardInterrupt:
        pass
