"use strict";
// What of a run is in view, and what lies there: the functions of the page (page.js, behind this in one script) that know no
// document. A view is {t0, t1, top, seen}: ns from and to, the first row, and how many. A set holds events by row and begin.
const View = (() => {
const CROSSING = 1;  // kinds of tracks up to this one hold calls

// ---- the view ----
// Within the run: at least 50 ns and one row.
function bound(view, duration, rows) {
  const least = Math.min(duration, 50), wide = Math.max(least, Math.min(duration, view.t1 - view.t0));
  view.t0 = Math.max(0, Math.min(duration - wide, view.t0));
  view.t1 = view.t0 + wide;
  view.seen = Math.max(Math.min(rows, 1), Math.min(rows, view.seen)) || 1;
  view.top = Math.max(0, Math.min(rows - view.seen, view.top));
}
// `at` stays where it is.
function zoom(view, factor, at) {
  view.t0 = at - (at - view.t0) * factor; view.t1 = at + (view.t1 - at) * factor;
}
function zoomRows(view, factor, at, rows) {
  const seen = Math.max(1, Math.min(rows, view.seen * factor));
  view.top = at - (at - view.top) * seen / view.seen; view.seen = seen;
}
// To a call: in the middle, half as wide as the view.
function go(view, rows, row, begin, length) {
  const wide = Math.max(length * 2, 1000);
  view.t0 = begin + length / 2 - wide / 2; view.t1 = view.t0 + wide;
  if (view.seen > 40) view.seen = Math.min(rows, 24);
  view.top = row + .5 - view.seen / 2;
}
const rowsIn = (view, rows) => [Math.max(0, Math.floor(view.top)), Math.min(rows - 1, Math.ceil(view.top + view.seen))];

// ---- sets of events ----
// A set (of those events that the page always holds, or all of a stretch of time) is sorted by row and begin; `reach` is the
// largest end so far in a row, so that both ends of a view are found by halving.
function index(set, rows) {
  const n = set.begin.length;
  const rowStart = set.rowStart = new Int32Array(rows + 1);
  for (let i = 0; i < n; i++) rowStart[set.row[i] + 1]++;
  for (let r = 0; r < rows; r++) rowStart[r + 1] += rowStart[r];
  const reach = set.reach = new Float64Array(n), lane = set.lane = new Uint8Array(n), lanes = set.lanes = new Uint8Array(rows).fill(1);
  for (let r = 0; r < rows; r++) {
    let most = -Infinity;
    const threads = new Set();
    for (let i = rowStart[r]; i < rowStart[r + 1]; i++) {
      most = Math.max(most, set.begin[i] + set.time[i]);
      reach[i] = most;
      if (set.what[i] <= CROSSING) threads.add(set.thread[i]);
    }
    const order = [...threads].sort((a, b) => a - b);
    lanes[r] = Math.max(1, order.length);
    if (order.length > 1) for (let i = rowStart[r]; i < rowStart[r + 1]; i++) lane[i] = Math.max(0, order.indexOf(set.thread[i]));
  }
  return set;
}
function halve(low, high, isAfter) {
  while (low < high) { const mid = low + high >> 1; if (isAfter(mid)) high = mid; else low = mid + 1; }
  return low;
}
// All of that row that touch t0 to t1 lie between these two; some of them may end before.
function range(set, row, t0, t1) {
  const a = set.rowStart[row], b = set.rowStart[row + 1];
  return [halve(a, b, i => set.reach[i] >= t0), halve(a, b, i => set.begin[i] > t1)];
}
function fewEnough(set, view, rows, most) {
  const [first, last] = rowsIn(view, rows);
  let count = 0;
  for (let row = first; row <= last; row++) { const [a, b] = range(set, row, view.t0, view.t1); count += b - a; if (count > most) return false; }
  return true;
}
const isIn = (view, stretch) => stretch.to > view.t0 && stretch.from < view.t1;
// How many calls of stretches that can be unpacked are in view, about.
function callsIn(stretches, view, rows) {
  let count = 0;
  for (const d of stretches) if (isIn(view, d)) count += d.calls * (Math.min(d.to, view.t1) - Math.max(d.from, view.t0)) / (d.to - d.from) * view.seen / rows;
  return count;
}
// The call under a point, as its set and its place in that, or null: the one that is drawn there before one beside it, and of
// calls in calls the innermost. `near`: ns that count as there.
function nearest(sets, row, t, near, isShown, isDrawnAt) {
  let best = null, rank = -1;
  for (const set of sets) {
    const [a, b] = range(set, row, t - near, t + near);
    for (let i = a; i < b; i++) {
      const begin = set.begin[i], end = begin + set.time[i];
      if (end < t - near || begin > t + near || !isShown(set, i)) continue;
      const exact = begin <= t && t <= end, worth = (isDrawnAt(set, i) ? 4 : 0) + (exact ? 2 : 0) + set.depth[i] / 256;
      if (worth > rank) { best = {set, i}; rank = worth; }
    }
  }
  return best;
}
// Which texts hold what is looked for; none of them is empty.
function matchingTexts(texts, search) {
  const found = Uint8Array.from(texts, t => t.toLowerCase().includes(search) ? 1 : 0);
  found[0] = 0;
  return found;
}
// Of a set, those whose call or place matches, the longest first.
function longest(set, matching) {
  const found = [];
  for (let i = 0; i < set.name.length; i++) if (matching[set.name[i]] | matching[set.site[i]]) found.push(i);
  return found.sort((a, b) => set.time[b] - set.time[a]);
}

// ---- messages ----
// Of a call: the messages that it sent, or in which it ended.
const isOf = (arrows, i, call) => call !== null && (arrows.source[i] === call.row && arrows.sent[i] === call.begin
  || arrows.target[i] === call.row && arrows.came[i] === call.begin + call.time);
// As [x0, y0, x1, y1, whether it is of that call], the first `most` that can be seen. `to`: {x, y, box, least}, pixels of a time
// and of a row, and how long an arrow must be.
function arrowsIn(arrows, view, to, most, call) {
  const {x, y, box, least} = to, high = box.y + box.h, seen = [];
  for (let i = 0; i < arrows.sent.length && seen.length < most; i++) {
    if (arrows.came[i] < view.t0 || arrows.sent[i] > view.t1) continue;
    const y0 = y(arrows.source[i] + .5), y1 = y(arrows.target[i] + .5);
    if (y0 < box.y && y1 < box.y || y0 > high && y1 > high) continue;
    const x0 = x(arrows.sent[i]), x1 = x(arrows.came[i]);
    if (Math.abs(x1 - x0) + Math.abs(y1 - y0) < least) continue;
    seen.push([x0, y0, x1, y1, isOf(arrows, i, call)]);
  }
  return seen;
}
// Many that begin and end in one place of the picture are a curtain, which tells nothing.
const withoutCurtain = (seen, many, flat) => seen.length <= many ? seen : seen.filter(([x0, , x1, , mine]) => mine || Math.abs(x1 - x0) >= flat);

// ---- shares of time ----
// Half as many bins, or rows: the mean of two.
function halfOfBins(from) {
  const bins = from.bins >> 1;
  const planes = from.planes.map(([kind, plane]) => {
    const made = new Uint8Array(bins * from.rows);
    for (let i = 0; i < made.length; i++) made[i] = plane[2 * i] + plane[2 * i + 1] + 1 >> 1;
    return [kind, made];
  });
  return {bins, rows: from.rows, planes};
}
function halfOfRows(from) {
  const n = from.rows + 1 >> 1;
  const planes = from.planes.map(([kind, plane]) => {
    const made = new Uint8Array(from.bins * n);
    for (let r = 0; r < n; r++) {
      const a = 2 * r * from.bins, b = Math.min(2 * r + 1, from.rows - 1) * from.bins;
      for (let i = 0; i < from.bins; i++) made[r * from.bins + i] = plane[a + i] + plane[b + i] + 1 >> 1;
    }
    return [kind, made];
  });
  return {bins: from.bins, rows: n, planes};
}
const levelFor = (perPixel, most) => Math.max(0, Math.min(most, Math.floor(Math.log2(Math.max(1, perPixel)))));
// Which bin each column of pixels shows.
function binsOf(view, duration, bins, wide) {
  const column = new Int32Array(wide);
  for (let i = 0; i < wide; i++) column[i] = Math.min(bins - 1, Math.floor((view.t0 + (i + .5) * (view.t1 - view.t0) / wide) / duration * bins));
  return column;
}

// ---- texts ----
function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (Math.abs(ns) >= size) return `${+(ns / size).toPrecision(5)} ${unit}`;
  return `${Math.round(ns)} ns`;
}
function bytes(n) {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) if (n >= size) return `${+(n / size).toPrecision(3)} ${unit}`;
  return `${n} B`;
}

return {
  bound, zoom, zoomRows, go, rowsIn, index, range, fewEnough, isIn, callsIn, nearest, matchingTexts, longest, isOf, arrowsIn, withoutCurtain,
  halfOfBins, halfOfRows, levelFor, binsOf, time, bytes,
};
})();
