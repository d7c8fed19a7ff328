"""A stand-in for CuPy's binding of NCCL: ranks are threads, which hand each other bytes."""

import collections
import ctypes
import threading

SECONDS = 120


class Wires:
    """What all ranks of one communicator share."""

    def __init__(self):
        self.condition = threading.Condition()
        self.sent = collections.defaultdict(collections.deque)  # by (from, to)
        self.met, self.ended, self.aborted = [], [], []

    def check(self):
        """Raise an error that NCCL has met; it meets none."""

    def note(self, where, rank):
        with self.condition:
            where.append(rank)
            self.condition.notify_all()

    def come(self, condition):
        """Return whether something of these becomes true."""
        with self.condition:
            return self.condition.wait_for(condition, SECONDS)

    def binding(self):
        """Return the module as one process has it."""
        return Binding(self)


class Binding:
    """``cupy.cuda.nccl``, as far as the engine uses it; calls take effect when a group ends."""

    NCCL_UINT8 = 1

    def __init__(self, wires):
        self.wires, self.waiting, self.thread = wires, None, None
        outer = self

        class NcclCommunicator:
            def __init__(self, size, number, rank):
                assert number == b"\0number of all"
                outer.wires.met.append((size, rank))
                self.rank = rank

            def send(self, address, count, kind, peer, stream):
                outer.add(kind, "send", self.rank, address, count, peer)

            def recv(self, address, count, kind, peer, stream):
                outer.add(kind, "recv", self.rank, address, count, peer)

            def check_async_error(self):
                outer.wires.check()

            def destroy(self):
                outer.wires.note(outer.wires.ended, self.rank)

            def abort(self):
                outer.wires.note(outer.wires.aborted, self.rank)

        self.NcclCommunicator = NcclCommunicator

    def get_unique_id(self):
        return b"\0number of all"

    def groupStart(self):
        assert self.waiting is None
        self.waiting, self.thread = [], threading.get_ident()

    def add(self, kind, *call):
        assert kind == self.NCCL_UINT8
        assert self.thread == threading.get_ident(), "a group is of one thread"
        self.waiting.append(call)

    def groupEnd(self):
        assert self.thread == threading.get_ident(), "a group is of one thread"
        calls, self.waiting = self.waiting, None
        wires = self.wires
        with wires.condition:
            for what, rank, address, count, peer in calls:
                if what == "send":
                    wires.sent[rank, peer].append(ctypes.string_at(address, count))
            wires.condition.notify_all()
            for what, rank, address, count, peer in calls:
                if what == "recv":
                    came = wires.condition.wait_for(
                        lambda key=(peer, rank): wires.sent[key], SECONDS
                    )
                    assert came, "the other side did not send"
                    found = wires.sent[peer, rank].popleft()
                    assert len(found) == count
                    ctypes.memmove(address, found, count)
