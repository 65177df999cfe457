// Drawings as SVG text: waterfalls, critical paths, packets. Colours are those of the report (figures/theme.py),
// as variables of the style sheet. What a page says only ever becomes text, never markup.

import { COMPONENTS, spent } from "./critical_path.mjs";

// As many packets as fit a panel.
export const SHOWN_PACKETS = 28;

// Phases of a request, as the report's waterfall has them.
export const PHASES = {
  queued: "waiting for a connection",
  connect: "connecting",
  wait: "waiting for the answer",
  receive: "receiving",
};

const ROW = 15;
const AXIS = 22;
const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000];
const LEAST_GAP = 15;

export function seconds(ms) {
  if (ms === null) return "none";
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(3)} s`;
}

function safe(text) {
  return String(text).replace(/[&<>"]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character]);
}

function svg(width, height, label, parts) {
  return `<svg role="img" aria-label="${safe(label)}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
}

// A rectangle as part of a path: many of one colour are drawn as one element.
function box(x, y, width, height) {
  return `M${x.toFixed(1)} ${y}h${Math.max(0.6, width).toFixed(1)}v${height}H${x.toFixed(1)}z`;
}

function filled(colour, boxes) {
  return boxes.length ? `<path fill="var(--${colour})" d="${boxes.join("")}"/>` : "";
}

// A round step that leaves room for the labels of an axis.
function tickEvery(span, pixels) {
  return TICKS.find((tick) => (tick / span) * pixels >= 55) ?? TICKS.at(-1);
}

function axis(end, left, width, height) {
  const parts = [];
  const every = tickEvery(end, width);
  for (let at = 0; at <= end; at += every) {
    const x = left + (at / end) * width;
    const label = every >= 1000 ? `${at / 1000} s` : end >= 1000 ? `${(at / 1000).toFixed(every < 100 ? 2 : 1)} s` : `${at} ms`;
    parts.push(`<line class="grid" x1="${x}" x2="${x}" y1="${AXIS - 4}" y2="${height}"/>`);
    parts.push(`<text class="tick" x="${x}" y="12" text-anchor="${at ? "middle" : "start"}">${label}</text>`);
  }
  return parts;
}

// The phases of a row of `requests` that took time: name, start, end.
export function phasesOf(row) {
  const start = row.connect_start_ms ?? row.sent_ms;
  const connected = row.sent_ms ?? row.connect_end_ms;
  const moments = [row.queued_ms, start, connected, row.first_byte_ms, row.end_ms];
  return Object.keys(PHASES).flatMap((phase, index) => {
    const [from, to] = moments.slice(index, index + 2);
    return from !== null && to !== null && to > from ? [[phase, from, to]] : [];
  });
}

function begun(row) {
  return row.queued_ms ?? row.connect_start_ms ?? row.sent_ms ?? Infinity;
}

// The order of rows that both waterfalls share: by start in the first load.
export function rowOrder(requests) {
  return requests.toSorted((a, b) => begun(a) - begun(b) || a.index - b.index).map((row) => row.index);
}

// One load's waterfall, in two parts: the rows' names, which seldom change, and all else. `end`: of the axis, ms, the
// same for both loads.
export function waterfall({ name, record, segments }, order, end, width) {
  const left = Math.min(260, Math.round(width * 0.34));
  const span = width - left - 8;
  const x = (ms) => left + (ms / end) * span;
  const height = AXIS + order.length * ROW + 4;
  const rows = new Map(record.requests.map((row) => [row.index, row]));
  const places = new Map(order.map((index, place) => [index, AXIS + place * ROW]));
  const characters = Math.floor((left - 8) / 6.2);
  const names = order.map((index) => `<text x="0" y="${places.get(index) + 11}">${safe(short(rows.get(index)?.url ?? "", characters))}</text>`);
  const boxes = Object.fromEntries(Object.keys(PHASES).map((phase) => [phase, []]));
  const crosses = [];
  for (const row of record.requests) {
    const y = places.get(row.index);
    for (const [phase, from, to] of phasesOf(row)) boxes[phase].push(box(x(from), y + 2, x(to) - x(from), 8));
    const last = row.first_byte_ms ?? row.sent_ms ?? row.queued_ms ?? 0;
    if (row.end_ms === null) crosses.push(`<text class="bad" x="${x(last)}" y="${y + 11}">×</text>`);
  }
  const path = segments.map(({ request, start, end: until }) => box(x(start), places.get(request) + 11, x(until) - x(start), 2.5));
  const critical = new Set(segments.map(({ request }) => request));
  const marks = [...critical].map((request) => box(left - 7, places.get(request) + 4, 4, 4));
  const plt = record.plt_ms === null ? "" : `<line class="plt" x1="${x(record.plt_ms)}" x2="${x(record.plt_ms)}" y1="${AXIS - 4}" y2="${height}"/>`;
  const failed = record.failed_requests ? `, ${record.failed_requests} failed` : "";
  return {
    width,
    height,
    names: names.join(""),
    bars: [...axis(end, left, span, height), ...Object.entries(boxes).map(([phase, of]) => filled(phase, of)), filled("ink", [...path, ...marks]), plt, ...crosses].join(""),
    label: `Waterfall with ${name}: ${record.request_count} requests${failed}, PLT ${seconds(record.plt_ms)}`,
  };
}

// Puts a waterfall into its place; names that are there already are not laid out again.
export function placeWaterfall(region, { width, height, names, bars, label }) {
  const key = `${width} ${height} ${names}`;
  if (region.names !== key) {
    region.innerHTML = svg(width, height, label, ["<g>", names, "</g><g></g>"]);
    region.names = key;
  }
  region.firstChild.setAttribute("aria-label", label);
  region.firstChild.lastChild.innerHTML = bars;
}

function short(url, characters) {
  const text = url.replace(/^https?:\/\//, "");
  if (text.length <= characters) return text;
  const file = text.split(/[?#]/)[0].split("/").filter(Boolean).at(-1);
  const host = text.split("/")[0];
  const joined = `${host.slice(0, Math.max(6, characters - Math.min(file.length, 14) - 2))}…${file.slice(-14)}`;
  return joined.length <= characters ? joined : `${text.slice(0, characters - 1)}…`;
}

// Both critical paths as bars on one scale, parts in the order of the report's figure.
export function pathBars(sides, width) {
  const end = Math.max(...sides.map((side) => side.record.plt_ms ?? 0), 1);
  const left = 100;
  const span = width - left - 8;
  const height = AXIS + sides.length * 30;
  const parts = axis(end, left, span, height);
  for (const [place, { name, segments }] of sides.entries()) {
    const y = AXIS + place * 30 + 4;
    parts.push(`<text x="0" y="${y + 15}">${safe(name)}</text>`);
    let at = left;
    for (const [component, ms] of Object.entries(spent(segments))) {
      parts.push(filled(component, [box(at, y, (ms / end) * span, 20)]));
      at += (ms / end) * span;
    }
  }
  const words = sides.map(({ name, record }) => `${name} ${seconds(record.plt_ms)}`).join(", ");
  return svg(width, height, `Critical paths: ${words}; the table has the parts`, parts);
}

// What each part of the critical paths takes: rows of name, both times, and their difference, ms.
export function pathTable(sides) {
  const [before, after] = sides.map(({ segments }) => spent(segments));
  const rows = Object.keys(COMPONENTS).filter((part) => before[part] || after[part]).map((part) => {
    const [one, two] = [before[part] ?? 0, after[part] ?? 0];
    return `<tr><th scope="row"><i style="background:var(--${part})"></i>${COMPONENTS[part]}</th><td>${one.toFixed(1)}</td><td>${two.toFixed(1)}</td><td>${signed(two - one)}</td></tr>`;
  });
  const heads = ["part", ...sides.map(({ name }) => `${safe(name)}, ms`), "difference, ms"];
  return `<thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody>`;
}

export function signed(number, digits = 1) {
  const text = Math.abs(number).toFixed(digits);
  return Number(text) === 0 ? text : `${number < 0 ? "−" : "+"}${text}`;
}

// The first packets of one connection between client (left) and server (right), time downwards.
export function ladder(name, packets, conn, width) {
  const shown = packets.slice(0, SHOWN_PACKETS);
  const start = shown[0]?.sent ?? 0;
  const last = Math.max(start + 1, ...shown.map((packet) => packet.arrived ?? packet.sent));
  const [client, server] = [width < 420 ? 84 : 130, width - (width < 420 ? 84 : 130)];
  const height = Math.max(160, Math.round(Math.min(520, shown.length * 22)));
  const y = (ms) => AXIS + 14 + ((ms - start) / (last - start)) * (height - 10);
  const total = y(last) + 16;
  const parts = [
    `<text x="${client}" y="14" text-anchor="middle" class="critical">client</text>`,
    `<text x="${server}" y="14" text-anchor="middle" class="critical">server</text>`,
    `<line class="plt" x1="${client}" x2="${client}" y1="${AXIS}" y2="${total}"/>`,
    `<line class="plt" x1="${server}" x2="${server}" y1="${AXIS}" y2="${total}"/>`,
  ];
  const free = { true: 0, false: 0 };
  for (const packet of shown) {
    const [from, to] = packet.up ? [client, server] : [server, client];
    const [isUnderWay, isLost] = [packet.fate === "sent", packet.arrived === null && packet.fate !== "sent"];
    const reach = packet.arrived === null ? from + (to - from) * 0.55 : to;
    const until = y(packet.arrived ?? packet.sent + (last - start) * 0.04);
    const look = `packet ${packet.kind}${isUnderWay ? " underway" : ""}`;
    parts.push(`<line class="${look}" x1="${from}" y1="${y(packet.sent).toFixed(1)}" x2="${reach}" y2="${until.toFixed(1)}"/>`);
    if (isLost) parts.push(`<text class="bad" x="${reach}" y="${(until + 4).toFixed(1)}" text-anchor="middle">×<title>${packet.fate}</title></text>`);
    const at = Math.max(y(packet.sent) + 4, free[packet.up]);
    if (at > y(packet.sent) + 2 * LEAST_GAP) continue;
    free[packet.up] = at + LEAST_GAP;
    const narrow = width < 420;
    const label = narrow ? packet.label.replace(/ \+ (?=\w+ \d)/, "+").slice(0, 13) : `${packet.sent.toFixed(0)} ms ${packet.label}`.slice(0, 22);
    parts.push(`<text x="${packet.up ? client - 6 : server + 6}" y="${at.toFixed(1)}" text-anchor="${packet.up ? "end" : "start"}">${safe(label)}</text>`);
  }
  const lost = shown.filter((packet) => packet.arrived === null && packet.fate !== "sent").length;
  return svg(width, total, `First ${shown.length} packets of connection ${conn} with ${name}, ${lost} of them lost, until ${seconds(last)}`, parts);
}
