"""The process that runs a GGUF model: llama.cpp's server on a loopback port, for the one parent that holds its key.

Loading holds the interpreter's lock from its beginning to its end (a second for each 100 MB), reading a prompt cannot
be broken off from Python, and too little memory kills: so the model has a process of its own, which ends when its
standard input does, however its parent ended.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Load what the first line of standard input names, answer with an address or an error, serve until the end."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # These reach the whole process group or service; the parent decides when the model goes.
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.readline())
    try:
        server = _serve(order)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(json.dumps({"error": str(error)}), file=reply, flush=True)
        return
    print(json.dumps({"url": server.listening_address}), file=reply, flush=True)
    sys.stdin.read()
    # Not by the interpreter's end: it would wait for an answer that is still being written.
    os._exit(0)


def _serve(order: dict[str, Any]) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = order["path"]
    params.model_alias = order["name"]
    params.n_ctx = order["context_window"]
    # A reader who leaves is noticed between two batches, and 128 tokens are read no slower than 2,048.
    params.n_batch = params.n_ubatch = 128
    params.n_parallel = 1  # several would share the window out among them
    if order["threads"]:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.api_keys = [order["key"]]
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # any free one
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.cache_ram_mib = 0  # of past prompts; by default eight gigabytes
    params.ctx_shift = False  # an answer that fills the window ends, instead of forgetting its instructions
    return xllamacpp.Server(params)
