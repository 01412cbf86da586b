"""What advise says, as JSON.

Format "headway-advice", version 1. Times are ns, whole; what is not known is null. Keys below are there; others
may come without a new version; an unknown kind is a string.

  format, version   "headway-advice", 1
  run               folder, program, ranks, time
  models            the closest first; each: text, fits, miss (share of the run's time; null: its replay hangs), elsewhere
                    (share of it that a rank has in other calls), time
  promises          true if some model fits
  why               a sentence where there is no promise; else ""
  advice            in the order in which they are to be carried out; each, given those before it:
    kind            put off, pair, early, test
    call            file, line, function, module, offset, name of the call that is changed
    other           the same of the call into or behind which it goes; of a test, where the stretch begins
    count           tests in a stretch; else 0
    least, most     ns that the run gets shorter, over all models that fit; least also over runs that differ a little
    doubt           a sentence why nothing is promised, since the machine decides what the run takes: least is 0; else ""
    check           what must be looked at before: a trace does not show it
    text            a sentence
  told              never promised; each: kind (collective, balance, pack, unpack), call, other, rank, more (share; of
                    pack and unpack ns a byte), most, text
  dropped           changes that were looked at, and are no advice; each: kind, call, other, count, and
    why             less (than 1 % of the run, under that model), missed (less than that model's replay misses), shaken (less
                    than 1 % in a run that computes a little otherwise), hangs
    gain            ns, under that model; null if it hangs
    most            ns, under another one; null where that was not looked at
    model           its text
  unsure            where there is no advice, a sentence on what would give most if another model is right; else ""
  facts             what was measured of the MPI beside the run:
    source          a file, or the like; "" if nothing was
    near, far       on one host, between hosts; a list, by size; each: size, time (ns), copied (null: not asked), acked,
                    moves (sentences; several if that is not known), busy, lets_go (ns after which a wait for a send alone
                    goes on though nothing has moved; null: it does not), pushed (a blocking send brings the data itself),
                    text
  aside             a sentence on what was measured and does not explain this run; else ""
  missing           a sentence if advice may be missing because nothing was measured; else ""
  tried             null, or what came of --try:
    number          of the advice, from 1
    ok, why         false: it failed or was refused, and a sentence; else ""
    pairs           ns of the unchanged and the changed run, each pair
    gain, low, high ns that the changed runs are shorter, and its 95 % interval; null if it failed
    least, most     as promised
    counts          reached, put_off, at_once: sends; stretches, tests: of a second thread that tests
    ended           how often sends that were put off ended: wait, write, beside, free, call, send, receive, other, end
    refused         how often waits stayed where they stand, by why
    writer, beside  file:line that wrote first into a buffer whose send was put off, or beside one; "" if none did
    messages        that were received, with the same bytes in both runs
    collectives     calls of them on all ranks, of the same kinds, roots and sizes in both runs
    text            sentences
"""

from __future__ import annotations

from headway.record import edits
from headway.record.advise import Advices, sentence, unsure
from headway.record.facts import FAR, NEAR, Facts
from headway.record.transport import MOVES
from headway.record.words import clean

FORMAT, VERSION = "headway-advice", 1


def as_json(found: Advices) -> dict:
    run = found.line.run
    return {
        "format": FORMAT,
        "version": VERSION,
        "run": {
            "folder": run.folder,
            "program": str(run.ranks[0].header.get("program", "")).rsplit("/", 1)[-1] if run.ranks else "",
            "ranks": len(run.ranks),
            "time": found.duration,
        },
        "models": [
            {
                "text": f.model.text,
                "fits": f.fits,
                "miss": None if f.outcome is None else f.miss,
                "elsewhere": None if f.outcome is None else f.elsewhere,
                "time": None if f.outcome is None else f.outcome.duration,
            }
            for f in found.fits
        ],
        "promises": not found.why,
        "why": found.why,
        "advice": [
            {
                "kind": one.change.kind,
                "call": _call(found, one.change.key),
                "other": _call(found, one.change.other),
                "count": one.change.count,
                "least": one.least,
                "most": one.most,
                "doubt": one.doubt,
                "check": edits.CHECK[one.change.kind],
                "text": sentence(found, one),
            }
            for one in found.advice
        ],
        "told": [
            {
                "kind": one.change.kind,
                "call": _call(found, one.change.key),
                "other": _call(found, one.change.other),
                "rank": one.change.rank,
                "more": one.change.more,
                "most": one.most,
                "text": sentence(found, one),
            }
            for one in found.told
        ],
        "dropped": [
            {
                "kind": one.change.kind,
                "call": _call(found, one.change.key),
                "other": _call(found, one.change.other),
                "count": one.change.count,
                "why": one.why,
                "gain": one.gain,
                "most": one.most,
                "model": one.model.text if one.model else "",
            }
            for one in found.dropped
        ],
        "unsure": unsure(found),
        "facts": {"source": clean(found.facts.source)} | {place: _seen(found.facts, place) for place in (NEAR, FAR)},
        "aside": found.aside,
        "missing": found.missing,
    }


def _seen(facts: Facts, place: str) -> list[dict]:
    return [
        {
            "size": one.size,
            "time": round(one.least),
            "copied": one.copied,
            "acked": one.acked,
            "moves": [MOVES[way] for way in one.moves],
            "busy": one.busy,
            "lets_go": one.lets_go,
            "pushed": one.pushed,
            "text": one.text,
        }
        for one in facts.seen.get(place, ())
    ]


def _call(found: Advices, key: int) -> dict | None:
    if key < 0:
        return None
    s = found.program.world.site(key)
    columns = {"file": s.file, "line": s.line, "function": s.function, "module": s.module, "offset": s.offset}
    return columns | {"name": found.program.world.name(key)}
