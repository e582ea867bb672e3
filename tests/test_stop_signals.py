"""Signals that end a process, each in a process of its own."""

import os
import signal
import subprocess
import sys

PROGRAM = """
import os, signal, time
from adapter.stop_signals import stop_event

with stop_event("stopping") as stop:
    os.kill(os.getpid(), signal.SIGTERM)
    print(f"stops: {stop.wait(10)}", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)  # another thread may receive it
    print("still there", flush=True)
"""


def test_the_first_signal_sets_the_event_and_the_second_ends_the_process_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.returncode) == ("stops: True\n", -signal.SIGINT)
    assert ended.stderr == "\nstopping\n"


def test_a_signal_sets_the_event_although_the_terminal_is_closed() -> None:
    reader, closed = os.pipe()
    os.close(reader)
    program = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(program, stdout=subprocess.PIPE, stderr=closed, text=True, timeout=60, check=False)
    os.close(closed)
    assert ended.stdout == "stops: True\n"


PROGRAM_OF_TWO_THREADS = """
import signal, threading
from adapter.stop_signals import stop_event, wait_for_stop

with stop_event() as stop:
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM))
    timer.start()
    wait_for_stop(stop)
    print("stops", flush=True)
"""


def test_a_signal_that_another_thread_receives_ends_the_wait() -> None:
    """It does not interrupt the main thread, and neither does one that arrives right before the wait."""
    program = [sys.executable, "-c", PROGRAM_OF_TWO_THREADS]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("stops\n", "")
