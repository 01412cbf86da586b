"""What came of `headway advise --try N`, for a terminal and as JSON (advise.py documents it)."""

from __future__ import annotations

from headway.record import edits
from headway.record.compare_words import time_change_text
from headway.record.trying import ENDED, REFUSED, Tried
from headway.record.words import count_text, time_text


def messages(tried: Tried) -> int:
    """That were received, and whose bytes were the same."""
    ranks = tried.proof.ranks if tried.proof else []
    return sum(count for rank in ranks for count, _sum in rank.channels.values())


def collectives(tried: Tried) -> int:
    """In which ranks were, each rank's counted."""
    ranks = tried.proof.ranks if tried.proof else []
    return sum(count for rank in ranks for count, _sum in rank.collectives.values())


def words(tried: Tried) -> list[str]:
    if tried.why:
        return [f"--try {tried.number} failed: {tried.why}."]
    return [gain_text(tried), promise_text(tried), *done(tried), same_text(tried)]


def gain_text(tried: Tried) -> str:
    before, after = tried.means
    gain = tried.gain
    shorter = "shorter" if gain.value >= 0 else "longer"
    value = time_change_text(gain if gain.value >= 0 else type(gain)(-gain.value, -gain.high, -gain.low)).lstrip("+")
    share = 100 * abs(gain.value) / max(1.0, before)
    return (
        f"Tried {tried.number} ({tried.call}), {len(tried.pairs)} pairs of runs: {time_text(before)} without, "
        f"{time_text(after)} with it: {value} {shorter}, {share:.3g} %. In brackets: 95 % interval."
    )


def promise_text(tried: Tried) -> str:
    one, gain = tried.advice, tried.gain
    if one.doubt:
        return f"Not promised: {one.doubt}."
    kept = "" if gain.value >= one.least else "; less was measured"
    if kept and gain.high >= one.least:
        kept = "; these pairs do not tell whether it gives that, more of them (--pairs) would"
    upper = f", up to {time_text(one.most)}" if one.most >= 1.1 * one.least else ""
    others = f", behind 1 to {tried.number - 1}; tried was it alone" if tried.number > 1 else ""
    return f"Promised: at least {time_text(one.least)}{upper}{kept}{others}."


def done(tried: Tried) -> list[str]:
    counts, ended, refused = (tried.total(what) for what in ("counts", "ended", "refused"))
    if tried.advice.change.kind == edits.TEST:
        tests, stretches = count_text(counts["tests"]), count_text(counts["stretches"])
        return [f"A second thread tested {tests} times, in {stretches} stretches of computation."]
    ends = ", ".join(f"{count_text(count)} {ENDED.get(name, name)}" for name, count in ended.most_common())
    found = [f"{count_text(counts['put-off'])} of {count_text(counts['reached'])} sends were put off: {ends}."]
    if counts["at-once"]:
        found.append(f"{count_text(counts['at-once'])} were over at once.")
    for name, count in refused.most_common():
        found.append(f"{count_text(count)} waits stayed where they stand: {REFUSED.get(name, name)}.")
    if ended["write"]:
        found.append(f"The buffer is written before that wait, first at {tried.writer}. In the program, wait before.")
    if ended["beside"]:
        found.append(
            f"Beside a buffer, on its pages, writes {tried.beside or 'a call of MPI'}. In the program that costs nothing; "
            "here it ends a wait too early."
        )
    return found


def same_text(tried: Tried) -> str:
    code = tried.proof.code if tried.proof else 0
    compared = tried.compared
    without = [f"{compared.loose} of them without their numbers"] * bool(compared.loose)
    without += [f"{compared.partly} of them without their times"] * bool(compared.partly)
    loose = f" ({', '.join(without)})" if without else ""
    called = collectives(tried)
    together = f"{count_text(called)} calls of collectives, " if called else ""
    return (
        f"The same with it as without: {count_text(messages(tried))} messages received, {together}{tried.compared.lines} lines "
        f"printed{loose}, exit code {code}."
    )


def as_json(tried: Tried | None) -> dict | None:
    if tried is None:
        return None
    found: dict = {
        "number": tried.number,
        "ok": not tried.why,
        "why": tried.why,
        "pairs": [list(pair) for pair in tried.pairs],
        "least": tried.advice.least,
        "most": tried.advice.most,
        "gain": None,
        "low": None,
        "high": None,
        "counts": {name.replace("-", "_"): count for name, count in tried.total("counts").items()},
        "ended": dict(tried.total("ended")),
        "refused": dict(tried.total("refused")),
        "writer": tried.writer,
        "beside": tried.beside,
        "messages": messages(tried),
        "collectives": collectives(tried),
        "text": " ".join(words(tried)),
    }
    if not tried.why:
        gain = tried.gain
        found |= {name: round(value) for name, value in (("gain", gain.value), ("low", gain.low), ("high", gain.high))}
    return found
