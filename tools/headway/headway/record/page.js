"use strict";
// The time line of a run. All data lie in the page: "meta" is JSON, "data-..." are arrays, deflated, in base64.
// Names come from a recording and are hostile: they are only ever shown as text.
// What is in view is found in page_view.js, which knows no document.
(async () => {
const {time, bytes, range} = View;
const byId = id => document.getElementById(id);
const problem = text => { byId("problem").textContent = text; byId("problem").hidden = false; };
if (typeof DecompressionStream === "undefined") {
  problem("The time line needs a browser of 2023 or later (DecompressionStream). The tables below are complete.");
  return;
}
const meta = JSON.parse(byId("meta").textContent);
const KINDS = {u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array};
async function unpack(id) {
  const node = byId(`data-${id}`);
  const text = node.textContent;
  let packed;
  if (Uint8Array.fromBase64) {
    packed = Uint8Array.fromBase64(text);
  } else {
    const bytes = atob(text);
    packed = new Uint8Array(bytes.length);
    for (let i = 0; i < bytes.length; i++) packed[i] = bytes.charCodeAt(i);
  }
  node.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const found = {};
  for (const [name, kind, offset, count] of meta.arrays[id]) found[name] = new KINDS[kind](buffer, offset, count);
  return found;
}

const {duration, rows, classes, texts} = meta;
const [COMPUTING, IN_MPI, OFF] = [0, 1, classes.length - 1];
const CALLS = 0, CROSSING = 1, TESTS = 2, LIBRARY = 3, NO_CORE = 4, NOT_RECORDED = 5;  // kinds of tracks
const STRIP = {[TESTS]: "#5d7183", [LIBRARY]: "#00838f", [NO_CORE]: "#000000"};
// What our library did by itself lies in bands of its own: faults and releases in one.
const FAULTS = 6, RELEASES = 7;
const marks = new Map(meta.marks.map(([what, name, colour, meaning]) => [what, {name, colour, meaning, shown: true}]));
const bandKey = what => what === FAULTS ? RELEASES : what;
const bands = [...new Set([...marks.keys()].map(bandKey))].sort((a, b) => a - b);
const EVENTS_AT_ONCE = 40000, ARROWS_AT_ONCE = 2000, ARROWS_IN_THIN_ROWS = 300, STEEP = 150;
const canvas = byId("line"), g = canvas.getContext("2d"), tip = byId("tip");
const view = {t0: 0, t1: duration, top: 0, seen: Math.min(rows, 64)};
const shown = classes.map(() => true);
let search = "", matching = null, withArrows = true, marked = null, hovered = null, selecting = null;
let shares = null, kept = null, arrows = null, box = null, scale = 1;

const two = parts => parts.filter(p => p).join(", ");
const rgb = text => [1, 3, 5].map(i => parseInt(text.slice(i, i + 2), 16));
const packedColour = ([r, gr, b]) => (255 << 24 | b << 16 | gr << 8 | r) >>> 0;  // canvases are little-endian everywhere
const colours = classes.map(c => rgb(c[1]));

// Levels of detail: halves of halves, in time and in ranks, made when they are first looked at.
const levels = new Map();
function level(lt, lr) {
  const key = lt * 64 + lr;
  let found = levels.get(key);
  if (found) return found;
  if (!lt && !lr) {
    found = {bins: meta.bins, rows, planes: shares};
  } else if (lt) {
    found = View.halfOfBins(level(lt - 1, lr));
  } else {
    found = View.halfOfRows(level(lt, lr - 1));
  }
  levels.set(key, found);
  return found;
}
const mostTimeLevels = (() => { let n = 0; for (let b = meta.bins; b > 1 && b % 2 === 0; b /= 2) n++; return n; })();
const mostRowLevels = Math.ceil(Math.log2(Math.max(1, rows)));
function mixed(of) {
  if (of.mixed) return of.mixed;
  const n = of.bins * of.rows, sum = new Uint16Array(n), r = new Float32Array(n), gr = new Float32Array(n), b = new Float32Array(n);
  for (const [kind, plane] of of.planes) {
    if (!shown[kind]) continue;
    const [cr, cg, cb] = colours[kind];
    for (let i = 0; i < n; i++) {
      const v = plane[i];
      if (v) { sum[i] += v; r[i] += v * cr; gr[i] += v * cg; b[i] += v * cb; }
    }
  }
  const made = new Uint32Array(n), [br, bg, bb] = shown[COMPUTING] ? colours[COMPUTING] : [255, 255, 255];
  for (let i = 0; i < n; i++) {
    const rest = Math.max(0, 255 - sum[i]), all = rest + sum[i];
    made[i] = packedColour([(r[i] + rest * br) / all, (gr[i] + rest * bg) / all, (b[i] + rest * bb) / all]);
  }
  return of.mixed = made;
}
const forgetColours = () => { for (const l of levels.values()) l.mixed = null; };

let strips = false;
function index(set) {
  strips = strips || set.what.some(what => what in STRIP);
  return View.index(set, rows);
}

// Stretches of which each call is held are unpacked when they are looked at closely enough.
const inView = d => View.isIn(view, d);
function nearEnough() {
  const count = View.callsIn(meta.detail, view, rows);
  return count <= EVENTS_AT_ONCE && count <= view.seen * box.w / (2 * scale) && rowHeight() >= 3 * scale;
}
async function load(d, number) {
  d.asked = true;
  const set = await unpack(`detail-${number}`);
  set.begin = Float64Array.from(set.begin, t => t + d.from);
  d.set = index(set);
  again();
}
const sets = () => [...opened.map(d => d.set), ...(kept ? [kept] : [])];
let opened = [];  // stretches that are drawn
function paintDetail() {
  opened = [];
  if (!meta.detail.length) return;
  const near = nearEnough();
  meta.detail.forEach((d, number) => {
    if (!inView(d)) return;
    if (near && !d.asked) load(d, number).catch(error => problem(`Some calls cannot be shown: ${error.message}.`));
    if (!near || !d.set) return;
    const from = Math.max(box.x, x(d.from)), to = Math.min(box.x + box.w, x(d.to));
    g.save();
    g.beginPath(); g.rect(from, box.y, to - from, box.h); g.clip();
    paintGround(from, to - from);
    paintEvents(d.set, true);
    g.restore();
    opened.push(d);
  });
}

const x = t => box.x + (t - view.t0) * box.w / (view.t1 - view.t0);
const timeAt = px => view.t0 + (px - box.x) * (view.t1 - view.t0) / box.w;
const rowHeight = () => box.h / view.seen;
const bandHeight = () => { const tall = rowHeight(); return tall >= 20 * scale ? Math.min(10 * scale, Math.max(3 * scale, tall * .1)) : 0; };
const isShown = (set, i) => marks.has(set.what[i]) ? marks.get(set.what[i]).shown && bandHeight() > 0 : shown[set.class[i]];
const y = row => box.y + (row - view.top) * rowHeight();
const rowAt = py => Math.floor(view.top + (py - box.y) / rowHeight());

function paintShares() {
  const w = Math.floor(box.w), h = Math.floor(box.h), tall = rowHeight();
  if (w < 1 || h < 1 || !shares) return;
  const lt = View.levelFor(meta.bins * (view.t1 - view.t0) / duration / w, mostTimeLevels), lr = View.levelFor(1 / tall, mostRowLevels);
  const of = level(lt, lr), image = g.createImageData(w, h), out = new Uint32Array(image.data.buffer);
  const column = View.binsOf(view, duration, of.bins, w);
  const ground = packedColour(shown[COMPUTING] ? colours[COMPUTING] : [255, 255, 255]), white = 0xffffffff;
  if (tall >= 6 * scale) {
    out.fill(white);
    const order = of.planes.filter(([kind]) => shown[kind]).reverse();
    const gap = Math.max(1, Math.round(tall * .08));
    for (let row = Math.floor(view.top); row < rows; row++) {
      const y0 = Math.max(0, Math.round(y(row) - box.y)), y1 = Math.min(h, Math.round(y(row + 1) - box.y) - gap);
      if (y0 >= h) break;
      const full = Math.round(tall) - gap, bottom = Math.round(y(row) - box.y) + full;
      for (let i = 0; i < w;) {
        let j = i + 1;
        while (j < w && column[j] === column[i]) j++;
        const cell = row * of.bins + column[i];
        let used = 0, from = bottom;
        for (const [kind, plane] of order) {
          const v = plane[cell];
          if (!v) continue;
          used = Math.min(255, used + v);
          const to = bottom - Math.round(full * used / 255), colour = packedColour(colours[kind]);
          for (let k = Math.max(y0, to); k < Math.min(y1, from); k++) out.fill(colour, k * w + i, k * w + j);
          from = to;
        }
        for (let k = y0; k < Math.min(y1, from); k++) out.fill(ground, k * w + i, k * w + j);
        i = j;
      }
    }
  } else {
    const cells = mixed(of);
    for (let k = 0; k < h; k++) {
      const row = Math.min(of.rows - 1, Math.floor((view.top + (k + .5) / tall) / 2 ** lr)), base = row * of.bins, to = k * w;
      for (let i = 0; i < w; i++) out[to + i] = cells[base + column[i]];
    }
  }
  if (matching) for (let i = 0; i < out.length; i++) out[i] = (out[i] >>> 2 & 0x3f3f3f) + 0xffbfbfbf;
  g.putImageData(image, box.x, box.y);
}

function place(set, i) {
  const row = set.row[i], tall = rowHeight(), gap = tall >= 6 * scale ? Math.max(1, tall * .08) : 0;
  const strip = strips && tall >= 14 * scale ? tall * .18 : 0, what = set.what[i];
  const band = bandHeight();
  let top = y(row), high = tall - gap - strip - band * bands.length;
  if (marks.has(what)) {
    top += high + band * bands.indexOf(bandKey(what)); high = band * .9;
    if (what === RELEASES) { top += high * .4; high *= .6; }  // a fault in it is seen above
  } else if (what in STRIP) {
    top += tall - gap - Math.max(strip, 2); high = Math.max(strip, 2);
  } else if (what !== NOT_RECORDED) {
    high /= set.lanes[row]; top += set.lane[i] * high;
    const inset = Math.min(.75, set.depth[i] * .15 + (what === CROSSING ? .5 : 0)) * high;
    top += inset; high -= inset;
  }
  return [top, Math.max(high, 1)];
}
const rowsInView = () => View.rowsIn(view, rows);
// What lies below all events, where all are drawn.
function paintGround(left, wide) {
  const [first, last] = rowsInView(), tall = rowHeight();
  g.fillStyle = "#ffffff"; g.fillRect(left, box.y, wide, box.h);
  g.fillStyle = shown[COMPUTING] ? classes[COMPUTING][1] : "#ffffff";
  for (let row = first; row <= last; row++) g.fillRect(left, y(row), wide, tall - (tall >= 6 * scale ? Math.max(1, tall * .08) : 0));
}
// `all`: each of them, on their ground; else those that can be seen on top of the shares.
function paintEvents(set, all) {
  const [first, last] = rowsInView(), tall = rowHeight();
  const least = all ? 0 : 2 * scale, fine = box.w * duration / meta.bins / (view.t1 - view.t0);
  if (!all && fine < 2 && !matching) return;
  g.font = `${11 * scale}px system-ui, sans-serif`;
  g.textBaseline = "middle";
  for (let row = first; row <= last; row++) {
    const [a, b] = range(set, row, view.t0, view.t1);
    let spent = 0;
    for (let i = a; i < b && spent < EVENTS_AT_ONCE; i++) {
      const kind = set.class[i], what = set.what[i];
      if (!isShown(set, i) || set.begin[i] + set.time[i] < view.t0) continue;
      const from = Math.max(box.x, x(set.begin[i])), to = Math.min(box.x + box.w, x(set.begin[i] + set.time[i]));
      if (to - from < least && !(matching && matching[set.name[i]] | matching[set.site[i]])) continue;
      if (what in STRIP && tall < 14 * scale && what !== NO_CORE) continue;
      const [top, high] = place(set, i), wide = Math.max(1, to - from);
      g.globalAlpha = matching && !(matching[set.name[i]] | matching[set.site[i]]) ? .15 : 1;
      g.fillStyle = STRIP[what] || (marks.has(what) ? marks.get(what).colour : classes[kind][1]);
      g.fillRect(from, top, wide, high);
      spent++;
      if (wide > 4 * scale && high > 4 * scale) { g.strokeStyle = "#1c222766"; g.lineWidth = 1; g.strokeRect(from + .5, top + .5, wide - 1, high - 1); }
      const text = marks.has(what) ? "" : texts[set.name[i]];
      if (text && high >= 11 * scale && wide > text.length * 6.5 * scale + 6 * scale) {
        const [r, gr, bl] = STRIP[what] ? [0, 0, 0] : colours[kind];
        g.fillStyle = .3 * r + .59 * gr + .11 * bl > 140 ? "#000" : "#fff";
        g.fillText(text, from + 3 * scale, top + high / 2);
      }
    }
  }
  g.globalAlpha = 1;
}

function paintArrows() {
  if (!withArrows || !arrows) return;
  const most = rowHeight() < 3 * scale ? ARROWS_IN_THIN_ROWS : ARROWS_AT_ONCE;
  const own = hovered && {row: hovered.set.row[hovered.i], begin: hovered.set.begin[hovered.i], time: hovered.set.time[hovered.i]};
  const seen = View.arrowsIn(arrows, view, {x, y, box, least: 4 * scale}, most, own);
  const drawn = View.withoutCurtain(seen, STEEP, 3 * scale);
  const plain = new Path2D(), heads = new Path2D(), bold = new Path2D(), boldHeads = new Path2D();
  for (const [x0, y0, x1, y1, mine] of drawn) {
    const line = mine ? bold : plain, head = mine ? boldHeads : heads;
    line.moveTo(x0, y0); line.lineTo(x1, y1);
    const a = Math.atan2(y1 - y0, x1 - x0), s = 6 * scale;
    head.moveTo(x1, y1);
    head.lineTo(x1 - s * Math.cos(a - .35), y1 - s * Math.sin(a - .35));
    head.lineTo(x1 - s * Math.cos(a + .35), y1 - s * Math.sin(a + .35));
    head.closePath();
  }
  g.save();
  g.beginPath(); g.rect(box.x, box.y, box.w, box.h); g.clip();
  const alpha = Math.max(.18, Math.min(.75, 40 / Math.max(1, drawn.length)));
  g.strokeStyle = g.fillStyle = `rgba(20,26,31,${alpha})`; g.lineWidth = scale;
  g.stroke(plain); g.fill(heads);
  g.strokeStyle = "#fff"; g.lineWidth = 5 * scale; g.stroke(bold);
  g.strokeStyle = g.fillStyle = "#b00020"; g.lineWidth = 2.5 * scale; g.stroke(bold); g.fill(boldHeads);
  g.restore();
  byId("arrowcount").textContent = seen.length > drawn.length ? `${drawn.length} in view, zoom in for more` : drawn.length === most ? `the ${most} longest-waiting in view` : `${drawn.length} in view`;
}

function paintAxis() {
  const span = view.t1 - view.t0, about = span / Math.max(2, box.w / (110 * scale)), ten = 10 ** Math.floor(Math.log10(about));
  const step = ten * [1, 2, 5, 10].find(k => k * ten >= about);
  const [unit, size] = step >= 1e8 ? ["s", 1e9] : step >= 1e5 ? ["ms", 1e6] : step >= 100 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / size) + 1e-9)));
  g.fillStyle = "#fff"; g.fillRect(0, 0, canvas.width, box.y);
  g.font = `${11 * scale}px system-ui, sans-serif`; g.textBaseline = "middle"; g.fillStyle = "#1c2227"; g.strokeStyle = "#1c222722"; g.lineWidth = 1;
  for (let k = Math.ceil(view.t0 / step); k * step <= view.t1; k++) {
    const at = Math.round(x(k * step)) + .5;
    g.beginPath(); g.moveTo(at, box.y - 5 * scale); g.lineTo(at, box.y + box.h); g.stroke();
    const text = `${(k * step / size).toFixed(digits)} ${unit}`;
    if (at + g.measureText(text).width + 3 * scale < canvas.width) g.fillText(text, at + 3 * scale, box.y / 2);
  }
  g.fillStyle = "#1f5fa8";
  for (const d of meta.detail) if (inView(d)) {
    const from = Math.max(box.x, x(d.from));
    g.fillRect(from, box.y - 3 * scale, Math.max(2 * scale, Math.min(box.x + box.w, x(d.to)) - from), 3 * scale);
  }
  g.clearRect(0, box.y, box.x, box.h + 1); g.fillStyle = "#1c2227"; g.textAlign = "right";
  const tall = rowHeight(), each = Math.max(1, 2 ** Math.ceil(Math.log2(13 * scale / tall)));
  for (let row = Math.ceil(view.top / each) * each; row < Math.min(rows, view.top + view.seen); row += each) {
    const at = y(row + .5);
    if (at > box.y + 4 * scale && at < box.y + box.h) g.fillText(`rank ${ranks[row]}`, box.x - 5 * scale, at);
  }
  g.textAlign = "left";
}
const bars = () => {
  const thick = 10 * scale, right = box.x + box.w + 2 * scale, below = box.y + box.h + 2 * scale;
  return [
    {down: true, x: right, y: box.y, w: thick, h: box.h, from: view.top / rows, part: view.seen / rows},
    {down: false, x: box.x, y: below, w: box.w, h: thick, from: view.t0 / duration, part: (view.t1 - view.t0) / duration},
  ];
};
function paintBars() {
  for (const b of bars()) {
    g.fillStyle = "#eef1f4"; g.fillRect(b.x, b.y, b.w, b.h);
    g.fillStyle = "#8b98a3";
    if (b.down) g.fillRect(b.x, b.y + b.from * b.h, b.w, Math.max(6 * scale, b.part * b.h));
    else g.fillRect(b.x + b.from * b.w, b.y, Math.max(6 * scale, b.part * b.w), b.h);
  }
}
function outline(row, begin, length, colour) {
  const x0 = Math.max(box.x, x(begin)), x1 = Math.min(box.x + box.w, x(begin + length)), top = y(row);
  if (x1 < box.x || x0 > box.x + box.w || top + rowHeight() < box.y || top > box.y + box.h) return;
  g.strokeStyle = "#fff"; g.lineWidth = 4 * scale; g.strokeRect(x0 - 1, top, Math.max(3, x1 - x0) + 2, rowHeight());
  g.strokeStyle = colour; g.lineWidth = 2 * scale; g.strokeRect(x0 - 1, top, Math.max(3, x1 - x0) + 2, rowHeight());
}

let waiting = false;
const again = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
let drawnAs = "";
function draw() {
  waiting = false;
  scale = window.devicePixelRatio || 1;
  const wide = Math.round(canvas.clientWidth * scale), high = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
  const left = Math.round((48 + 7 * String(meta.size).length) * scale), top = Math.round(22 * scale);
  box = {x: left, y: top, w: Math.max(1, wide - left - Math.round(14 * scale)), h: Math.max(1, high - top - Math.round(14 * scale))};
  View.bound(view, duration, rows);
  g.setTransform(1, 0, 0, 1, 0, 0);
  g.fillStyle = "#fff"; g.fillRect(0, 0, wide, high);
  if (!rows) { g.fillStyle = "#1c2227"; g.font = `${13 * scale}px sans-serif`; g.fillText("no rank was recorded", box.x, box.y + 20 * scale); return; }
  g.save();
  g.beginPath(); g.rect(box.x, box.y, box.w, box.h); g.clip();
  opened = [];
  drawnAs = kept && meta.allKept && rowHeight() >= 3 * scale && View.fewEnough(kept, view, rows, EVENTS_AT_ONCE) ? "events" : "shares";
  if (drawnAs === "events") { paintGround(box.x, box.w); paintEvents(kept, true); }
  else { paintShares(); if (kept) paintEvents(kept, false); paintDetail(); }
  g.restore();
  paintArrows();
  paintAxis();
  if (marked) outline(...marked, "#b00020");
  if (hovered) outline(hovered.set.row[hovered.i], hovered.set.begin[hovered.i], hovered.set.time[hovered.i], "#1c2227");
  if (selecting) { g.fillStyle = "#0072b233"; g.fillRect(Math.min(selecting.from, selecting.to), box.y, Math.abs(selecting.to - selecting.from), box.h); }
  paintBars();
  byId("window").textContent = `· ${time(view.t0)} to ${time(view.t1)} (${time(view.t1 - view.t0)})`;
}

function zoom(factor, at = (view.t0 + view.t1) / 2) { View.zoom(view, factor, at); again(); }
function zoomRows(factor, at = view.top + view.seen / 2) { View.zoomRows(view, factor, at, rows); again(); }
function go(row, begin, length) {
  View.go(view, rows, row, begin, length); marked = [row, begin, length];
  again(); canvas.scrollIntoView({block: "nearest"}); canvas.focus({preventScroll: true});
}

// A call, as its set and its place in that, or null.
function hit(px, py) {
  if (!kept || px < box.x || px > box.x + box.w || py < box.y || py > box.y + box.h) return null;
  const row = rowAt(py), near = 2 * scale * (view.t1 - view.t0) / box.w, t = timeAt(px);
  if (row < 0 || row >= rows) return null;
  return View.nearest(sets(), row, t, near, isShown, (set, i) => { const [top, high] = place(set, i); return py >= top - 1 && py <= top + high + 1; });
}
function tell(lines, at) {
  tip.replaceChildren(...lines.filter(l => l).map((l, i) => { const d = document.createElement(i ? "div" : "b"); d.textContent = l; return d; }));
  tip.hidden = false;
  tip.style.left = `${Math.min(at.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(at.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}
function linesOf({set, i}) {
  const kind = set.class[i], what = set.what[i], peer = set.peer[i], tag = set.tag[i];
  const number = n => n === -2 ? "any" : n;
  return [
    texts[set.name[i]],
    what <= CROSSING && (meta.told || kind !== IN_MPI) ? `${classes[kind][0]}: ${classes[kind][2]}` : marks.has(what) ? marks.get(what).meaning : "",
    time(set.time[i]) + `, from ${time(set.begin[i])}`,
    set.site[i] ? `at ${texts[set.site[i]]}` : "",
    what <= CROSSING ? two([peer !== -1 && `peer ${number(peer)}${set.world[i] !== -1 && set.world[i] !== peer ? ` (rank ${set.world[i]} of the world)` : ""}`, tag !== -1 && `tag ${number(tag)}`, set.bytes[i] > 0 && bytes(set.bytes[i])]) : "",
    marks.has(what) ? two([set.world[i] !== -1 && `from rank ${set.world[i]}`, set.bytes[i] > 0 && bytes(set.bytes[i])]) : set.comm[i] ? `on ${texts[set.comm[i]]}` : "",
    two([`rank ${ranks[set.row[i]]}`, set.lanes[set.row[i]] > 1 && `thread ${set.thread[i]}`, meta.hosts[hosts[set.row[i]]] && `on host ${meta.hosts[hosts[set.row[i]]]}`]),
  ];
}
function linesOfBin(px, py) {
  const row = rowAt(py), t = timeAt(px);
  if (!shares || row < 0 || row >= rows || t < 0 || t > duration) return [];
  if (drawnAs === "events" || opened.some(d => d.from <= t && t <= d.to)) return [`rank ${ranks[row]} at ${time(t)}`, "outside of MPI"];
  const lt = View.levelFor(meta.bins * (view.t1 - view.t0) / duration / box.w, mostTimeLevels), of = level(lt, 0);
  const bin = Math.min(of.bins - 1, Math.floor(t / duration * of.bins)), found = [];
  let rest = 255;
  for (const [kind, plane] of of.planes) { const v = plane[row * of.bins + bin]; if (v) { found.push([v, kind]); rest -= v; } }
  if (rest > 0) found.push([rest, COMPUTING]);
  found.sort((a, b) => b[0] - a[0]);
  return [`rank ${ranks[row]}, ${time(bin * duration / of.bins)} to ${time((bin + 1) * duration / of.bins)}`,
    ...found.map(([v, kind]) => `${Math.round(v / 2.55)} % ${classes[kind][0]}`)];
}

let dragging = null;
const local = e => { const r = canvas.getBoundingClientRect(); return [(e.clientX - r.left) * scale, (e.clientY - r.top) * scale]; };
canvas.addEventListener("pointerdown", e => {
  const [px, py] = local(e);
  const bar = bars().find(b => px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h);
  if (bar) dragging = {bar: bar.down};
  else if (e.shiftKey) selecting = {from: px, to: px};
  else dragging = {px, py, t0: view.t0, t1: view.t1, top: view.top};
  canvas.setPointerCapture(e.pointerId); tip.hidden = true; moveTo(px, py);
});
function moveTo(px, py) {
  if (selecting) { selecting.to = px; again(); return true; }
  if (!dragging) return false;
  if ("bar" in dragging) {
    if (dragging.bar) view.top = (py - box.y) / box.h * rows - view.seen / 2;
    else { const wide = view.t1 - view.t0; view.t0 = (px - box.x) / box.w * duration - wide / 2; view.t1 = view.t0 + wide; }
  } else {
    const d = (px - dragging.px) * (dragging.t1 - dragging.t0) / box.w;
    view.t0 = dragging.t0 - d; view.t1 = dragging.t1 - d; view.top = dragging.top - (py - dragging.py) / rowHeight();
  }
  again();
  return true;
}
canvas.addEventListener("pointermove", e => {
  const [px, py] = local(e);
  if (!box || moveTo(px, py)) return;
  const before = hovered;
  const found = hit(px, py), [top, high] = found === null ? [0, 0] : place(found.set, found.i);
  const seen = found && (drawnAs === "events" || found.set !== kept || found.set.time[found.i] * box.w / (view.t1 - view.t0) >= 2 * scale);
  hovered = seen && py >= top - 2 && py <= top + high + 2 ? found : null;
  const lines = hovered !== null ? linesOf(hovered) : px >= box.x && px <= box.x + box.w && py >= box.y && py <= box.y + box.h ? linesOfBin(px, py) : [];
  if (lines.length) tell(lines, e); else tip.hidden = true;
  if (before?.set !== hovered?.set || before?.i !== hovered?.i) again();
});
const release = () => {
  if (selecting && Math.abs(selecting.to - selecting.from) > 3 * scale) {
    const [a, b] = [timeAt(selecting.from), timeAt(selecting.to)];
    view.t0 = Math.min(a, b); view.t1 = Math.max(a, b);
  }
  selecting = dragging = null; again();
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (hovered !== null) { hovered = null; again(); } });
canvas.addEventListener("dblclick", e => zoom(.25, timeAt(local(e)[0])));
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  if (!box) return;
  const [px, py] = local(e), by = (e.deltaMode === 1 ? 30 : 1), down = e.deltaY * by, across = e.deltaX * by;
  if (e.shiftKey) view.top += (down || across) / 60 * Math.max(1, view.seen / 12);
  else if (e.ctrlKey || e.altKey) zoomRows(Math.exp(down / 300), view.top + (py - box.y) / rowHeight());
  else {
    if (across) { const d = across * (view.t1 - view.t0) / box.w * scale; view.t0 += d; view.t1 += d; }
    if (down) zoom(Math.exp(Math.max(-300, Math.min(300, down)) / 300), timeAt(Math.max(box.x, px)));
  }
  tip.hidden = true; again();
}, {passive: false});
function whole() { view.t0 = 0; view.t1 = duration; view.top = 0; view.seen = rows; marked = null; again(); }
canvas.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const pan = d => { d *= view.t1 - view.t0; view.t0 += d; view.t1 += d; };
  const keys = {
    ArrowLeft: () => pan(-.2), ArrowRight: () => pan(.2), a: () => pan(-.2), d: () => pan(.2),
    ArrowUp: () => e.shiftKey ? zoomRows(.7) : view.top -= Math.max(1, view.seen * .1),
    ArrowDown: () => e.shiftKey ? zoomRows(1 / .7) : view.top += Math.max(1, view.seen * .1),
    PageUp: () => view.top -= view.seen, PageDown: () => view.top += view.seen,
    "+": () => zoom(.6), "=": () => zoom(.6), w: () => zoom(.6), "-": () => zoom(1 / .6), s: () => zoom(1 / .6), Home: whole, Escape: () => { marked = null; },
  };
  if (keys[e.key]) { keys[e.key](); e.preventDefault(); again(); }
});

// Controls.
const button = (text, action, title) => {
  const made = document.createElement("button");
  made.type = "button"; made.textContent = text; made.addEventListener("click", action);
  if (title) made.title = title;
  return made;
};
byId("buttons").append(
  button("whole run", whole, "key Home"), button("time +", () => zoom(.5), "key +"), button("time −", () => zoom(2), "key −"),
  button("rows +", () => zoomRows(.5), "keys Shift+Up"), button("rows −", () => zoomRows(2), "keys Shift+Down"));
const legend = byId("legend");
classes.forEach(([name, colour, meaning], k) => {
  if (k !== COMPUTING && !meta.planes.includes(k)) return;
  const made = button("", () => {
    shown[k] = !shown[k]; made.setAttribute("aria-pressed", shown[k]); forgetColours(); again();
  }, `${meaning}. Click: show or hide`);
  const key = document.createElement("span");
  key.className = "key"; key.style.background = colour;
  made.append(key, name); made.setAttribute("aria-pressed", "true");
  legend.append(made);
});
for (const mark of marks.values()) {
  const made = button("", () => {
    mark.shown = !mark.shown; made.setAttribute("aria-pressed", mark.shown); again();
  }, `our library: ${mark.meaning}. Click: show or hide`);
  const key = document.createElement("span");
  key.className = "key"; key.style.background = mark.colour;
  made.append(key, mark.name); made.setAttribute("aria-pressed", "true");
  legend.append(made);
}
byId("arrows").addEventListener("change", e => { withArrows = e.target.checked; byId("arrowcount").textContent = ""; again(); });

let results = [], resultAt = -1;
function find(text) {
  search = text.trim().toLowerCase(); results = []; resultAt = -1;
  if (!search) { matching = null; byId("found").textContent = ""; again(); return; }
  matching = View.matchingTexts(texts, search);
  results = kept ? View.longest(kept, matching) : [];
  byId("found").textContent = results.length ? `${results.length.toLocaleString("en")} calls; Enter: the next longest one` : meta.allKept ? "no call" : "none of the calls that this page holds";
  again();
}
const input = byId("search");
input.addEventListener("input", () => find(input.value));
input.addEventListener("keydown", e => {
  if (e.key === "Escape") { input.value = ""; find(""); }
  if (e.key !== "Enter" || !results.length) return;
  resultAt = (resultAt + (e.shiftKey ? results.length - 1 : 1)) % results.length;
  const i = results[resultAt];
  go(kept.row[i], kept.begin[i], kept.time[i]); input.focus({preventScroll: true});
});

// Tables are whole without this: rows lead to their place, heads sort.
for (const row of document.querySelectorAll("tr[data-row]")) {
  const cell = row.cells[0];
  cell.append(" ", button("go", () => go(+row.dataset.row, +row.dataset.begin, +row.dataset.time), "show it on the time line"));
}
for (const table of document.querySelectorAll("table.sort")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const text = head.textContent;
    head.replaceChildren(button(text, () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach(h => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = r => { const c = r.cells[k]; return c.dataset.v === undefined ? c.textContent : +c.dataset.v; };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => { const [p, q] = [value(a), value(b)]; return (p < q ? -1 : p > q ? 1 : 0) * (down ? -1 : 1); }));
    }, "sort"));
  });
}

// Who sends to whom.
function matrix(data) {
  const n = meta.wide, picture = byId("matrix"), c = picture.getContext("2d"), choice = byId("measure");
  const size = Math.max(1, Math.floor(512 / n));
  picture.width = picture.height = n * size;
  const name = k => meta.group === 1 ? `rank ${k}` : `ranks ${k * meta.group} to ${Math.min(meta.size, (k + 1) * meta.group) - 1}`;
  const paint = () => {
    const values = data[choice.value];
    let most = 0, least = Infinity;
    for (const v of values) if (v > 0) { most = Math.max(most, v); least = Math.min(least, v); }
    c.fillStyle = "#fff"; c.fillRect(0, 0, picture.width, picture.height);
    for (let s = 0; s < n; s++) for (let r = 0; r < n; r++) {
      const v = values[s * n + r];
      if (!(v > 0)) continue;
      const part = most > least ? .15 + .85 * Math.log(v / least) / Math.log(most / least) : 1;
      c.fillStyle = `rgb(${Math.round(235 - 227 * part)},${Math.round(240 - 192 * part)},${Math.round(250 - 143 * part)})`;
      c.fillRect(r * size, s * size, size, size);
    }
    byId("scale").textContent = most ? `light: ${show(least)}, dark: ${show(most)} (logarithmic)` : "no messages";
  };
  const show = v => choice.value === "bytes" ? bytes(v) : choice.value === "waited" ? time(v) : `${v} messages`;
  choice.addEventListener("change", paint);
  picture.addEventListener("pointermove", e => {
    const box_ = picture.getBoundingClientRect(), r = Math.floor((e.clientX - box_.left) / box_.width * n), s = Math.floor((e.clientY - box_.top) / box_.height * n);
    const k = s * n + r;
    if (k >= 0 && k < n * n && r < n) tell([`${name(s)} to ${name(r)}`, `${data.messages[k]} messages, ${bytes(data.bytes[k])}`, `waited for: ${time(data.waited[k])}`], e);
  });
  picture.addEventListener("pointerleave", () => { tip.hidden = true; });
  paint();
}

let ranks = null, hosts = null;
try {
  const small = await unpack("rows");
  ranks = small.ranks; hosts = small.hosts;
  const planes = await unpack("shares"), size = rows * meta.bins;
  shares = meta.planes.map((kind, k) => [kind, planes.all ? planes.all.subarray(k * size, (k + 1) * size) : new Uint8Array(size)]);
  byId("app").hidden = false;
  whole();
  draw();
  document.body.dataset.first = Math.round(performance.now());
  kept = await unpack("kept");
  index(kept);
  arrows = await unpack("messages");
  if (input.value) find(input.value);
  draw();
  if (meta.wide) { byId("picture").hidden = false; matrix(await unpack("matrix")); }
  new ResizeObserver(again).observe(byId("frame"));
  document.body.dataset.ready = Math.round(performance.now());
} catch (error) {
  problem(`The time line cannot be drawn: ${error.message}. The tables below are complete.`);
  throw error;
}
window.timeline = {view, go, hit, draw, again, find, meta, get as() { return drawnAs; }, get kept() { return kept; }, get arrows() { return arrows; }, get box() { return box; }, x, y};
})();
