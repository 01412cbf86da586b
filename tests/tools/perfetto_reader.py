"""Reads what is written for Perfetto, without anything of it: for tests."""

import io
import struct
import zlib

from headway.record import perfetto


# A decoder of protobuf that knows nothing of what was written.
def fields(text):
    at, found = 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = text[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(text):
        key = number()
        wire = key & 7
        if wire == 0:
            value = number()
        elif wire == 1:
            value = struct.unpack_from("<Q", text, at)[0]
            at += 8
        elif wire == 2:
            length = number()
            value = text[at : at + length]
            if len(value) != length:
                raise AssertionError(f"field {key >> 3} ends behind its message")
            at += length
        else:
            raise AssertionError(f"wire type {wire}")
        found.append((key >> 3, value))
    return found


def first(found, field, default=None):
    return next((v for f, v in found if f == field), default)


def every(found, field):
    return [v for f, v in found if f == field]


class Reader:
    """Slices as trace_processor would show them; fails where it would complain."""

    def __init__(self, text):
        self.tracks, self.sequences = {}, {}
        self.slices, self.begun, self.ended = [], {}, {}
        self.packets = 0
        self.read(text)
        for s in self.sequences.values():
            if s["stack"]:
                raise AssertionError("slices that do not end")

    def read(self, text):
        for field, packet in fields(text):
            assert field == 1, field
            packet = fields(packet)
            packed = first(packet, 50)
            if packed is not None:
                self.read(zlib.decompress(packed))
            else:
                self.packets += 1
                self.packet(packet)

    def packet(self, packet):
        descriptor = first(packet, 60)
        if descriptor is not None:
            d = fields(descriptor)
            process, thread = first(d, 3), first(d, 4)
            known = {"name": first(d, 2, b"").decode(), "parent": first(d, 5)}
            if process is not None:
                known |= {"pid": first(fields(process), 1), "name": first(fields(process), 6).decode()}
            if thread is not None:
                t = fields(thread)
                known |= {"pid": first(t, 1), "tid": first(t, 2), "name": first(t, 5).decode(), "thread": True}
            assert first(d, 1) not in self.tracks, "a track twice"
            self.tracks[first(d, 1)] = known
            return
        number = first(packet, 10)
        flags = first(packet, 13, 0)
        if flags & 1:
            assert number not in self.sequences, "one sequence, one track"
            self.sequences[number] = {
                "names": {},
                "categories": {},
                "keys": {},
                "texts": {},
                "stack": [],
                "clock": None,
            }
        s = self.sequences[number]
        defaults = first(packet, 59)
        if defaults is not None:
            d = fields(defaults)
            s["clock_id"], s["track"] = first(d, 58), first(fields(first(d, 11)), 11)
        interned = first(packet, 12)
        if interned is not None:
            for field, table in ((1, "categories"), (2, "names"), (3, "keys"), (29, "texts")):
                for entry in every(fields(interned), field):
                    e = fields(entry)
                    assert first(e, 1) not in s[table], "a number twice"
                    s[table][first(e, 1)] = first(e, 2).decode()
        snapshot = first(packet, 6)
        if snapshot is not None:
            clocks = {first(c, 1): (first(c, 2), first(c, 3, 0)) for c in map(fields, every(fields(snapshot), 1))}
            assert clocks[s["clock_id"]][1] == 1 and clocks[6][0] == clocks[s["clock_id"]][0]
            s["clock"] = clocks[6][0]
        event = first(packet, 11)
        if event is None:
            return
        assert flags & 2
        s["clock"] += first(packet, 8)
        event = fields(event)
        kind = first(event, 9)
        if kind == 1:
            made = {
                "name": s["names"][first(event, 10)],
                "category": s["categories"][first(event, 3)],
                "track": self.tracks[s["track"]],
                "begin": s["clock"],
                "depth": len(s["stack"]),
            }
            for a in map(fields, every(event, 4)):
                text = first(a, 17)
                made[s["keys"][first(a, 1)]] = s["texts"][text] if text is not None else first(a, 4)
            s["stack"].append(made)
            self.slices.append(made)
        else:
            assert kind == 2
            made = s["stack"].pop()
            made["end"] = s["clock"]
            assert made["end"] >= made["begin"]
        for field, table in ((47, self.begun), (48, self.ended)):
            for flow in every(event, field):
                assert (field == 47) == (kind == 1)
                assert flow not in table
                table[flow] = (made, s["clock"])

    def of(self, name):
        return [s for s in self.slices if s["name"] == name]


def written(run, given=None, compress=True):
    file = io.BytesIO()
    perfetto.pour(perfetto.packets(run, given), file, compress)
    return file.getvalue()
