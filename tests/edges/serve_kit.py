"""Serves the small server on a port: `serve_kit.py PORT DRAIN_S`, `letgo` to end trapped calls once it stops."""

import socket
import sys
import threading

from edge_kit import Kit

from loom.edges.http import log_to_stderr, serve

kit = Kit()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))


def let_go_on_stop() -> None:
    """Let trapped calls end once the server was asked to stop; looks at most 30 seconds long."""
    pause = threading.Event()
    for _ in range(600):
        if kit.lifecycle.why_closed:
            kit.trap.release.set()
            return
        pause.wait(0.05)


log_to_stderr("WARNING")
if "letgo" in sys.argv:
    threading.Thread(target=let_go_on_stop, daemon=True).start()
serve(kit.app(), lifecycle=kit.lifecycle, listener=listener, drain_timeout_s=int(sys.argv[2]))
