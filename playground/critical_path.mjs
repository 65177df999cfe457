// The critical path of a simulated load: python/firstflight/analysis/critical_path (`walk.py`, `stages.py`), whose
// functions have the same names here. Only what the built-in loader can do; docs/explain.md has the rules.
// tests/unit/test_playground.py holds every segment to Python's.

// Components in the order of views, with their names.
export const COMPONENTS = {
  tcp: "TCP handshake",
  tls: "TLS handshake",
  quic: "QUIC handshake",
  connection: "waiting for a connection",
  request: "request upload",
  propagation: "round trip",
  server: "server",
  queueing: "queueing",
  window: "congestion window",
  transfer: "transfer",
  processing: "processing",
};

const MSS_BYTES = 1448;
const HEADER_BYTES = 52;
const SYN_RTO_MS = 1000;
const TOLERANCE_MS = 0.5;

// From navigation start to the load event: `{request, component, start, end}`, without gaps, ms.
// `record`: requests, connections, plt_ms. `page`: the profile. `path`: of the job.
export function criticalPath(record, page, path) {
  if (record.plt_ms === null || !record.requests.some((row) => times(row).length)) return [];
  return new Walk(new Load(record, page, path), record.plt_ms).back();
}

// Time per component, ms, in the order of views; components without time are left out.
export function spent(segments) {
  const found = Object.fromEntries(Object.keys(COMPONENTS).map((component) => [component, 0]));
  for (const { component, start, end } of segments) found[component] += end - start;
  return Object.fromEntries(Object.entries(found).filter(([, ms]) => ms > 0));
}

class Load {
  constructor(record, page, path) {
    this.requests = record.requests.filter((row) => times(row).length);
    this.resources = page.resources.map((resource) => ({ server_ms: 0, cpu_ms: 0, blocks_load: true, ...resource }));
    this.path = path;
    this.connections = new Map(record.connections.map((row) => [row.connection, row]));
    this.byIndex = new Map(this.requests.map((row) => [row.index, row]));
  }

  initiator(row) {
    const document = this.byIndex.get(0) ?? this.requests[0];
    let index = row.initiator;
    while (index !== null && !this.byIndex.has(index)) index = this.resources[index].initiator?.resource ?? null;
    const found = index === null ? document : this.byIndex.get(index);
    return found === row || row === document ? null : found;
  }

  connection(row) {
    return row.connection === null ? undefined : this.connections.get(row.connection);
  }

  downMs(bytes) {
    return busyMs(bytes, this.path.down_bps);
  }

  upMs(bytes) {
    return busyMs(bytes, this.path.up_bps);
  }
}

function busyMs(bytes, bps) {
  if (!bps || bytes <= 0) return 0;
  const segments = Math.ceil(bytes / MSS_BYTES);
  return ((bytes + segments * HEADER_BYTES) * 8) / ((bps / 1e6) * 1000);
}

function times(row) {
  const known = [row.queued_ms, row.connect_start_ms, row.connect_end_ms, row.sent_ms, row.first_byte_ms, row.end_ms];
  return known.filter((moment) => moment !== null);
}

function startedMs(row) {
  return Math.max(0, times(row)[0]);
}

function fetched(load, row, untilMs, bodyBytes) {
  const segments = [];
  let at = Math.min(startedMs(row), untilMs);
  for (const [end, parts] of stages(load, row, untilMs, bodyBytes)) {
    if (end > at) {
      segments.push(...lay(row.index, parts, at, end));
      at = end;
    }
  }
  return segments;
}

function* stages(load, row, untilMs, bodyBytes) {
  const { connect_start_ms: start, connect_end_ms: connected, sent_ms: sent } = row;
  if (start === null) {
    yield [clip(sent, untilMs), [["connection", 0]]];
  } else {
    yield [clip(start, untilMs), [["connection", 0]]];
    const known = [connected, sent].filter((at) => at !== null);
    yield [clip(known.length ? Math.min(...known) : null, untilMs), handshake(load, row)];
  }
  yield [clip(sent, untilMs), [["request", 0]]];
  const firstByte = clip(row.first_byte_ms, untilMs);
  if (sent !== null) yield [firstByte, answer(load, row)];
  yield [clip(row.end_ms, untilMs), body(load, row, firstByte, untilMs, bodyBytes)];
}

function clip(at, untilMs) {
  return at === null ? untilMs : Math.min(at, untilMs);
}

function handshake(load, row) {
  if (load.connection(row)?.protocol === "udp") return [["quic", 0]];
  if (!overTls(row)) return [["tcp", 0]];
  return [["tcp", tcpHandshakeMs(load, row)], ["tls", 0]];
}

function answer(load, row) {
  const resource = load.resources[row.index];
  const refused = row.connect_start_ms !== null && !overTls(row) && Boolean(load.connection(row)?.syn_payload_bytes);
  return [
    ["tcp", refused ? tcpHandshakeMs(load, row) : 0],
    ["propagation", load.path.rtt_ms],
    ["server", resource.server_ms],
    ["request", load.upMs(resource.request_bytes)],
    ["transfer", load.downMs(firstBytes(row))],
    ["queueing", 0],
  ];
}

function body(load, row, start, untilMs, bodyBytes) {
  const whole = row.body_bytes ?? 0;
  const arrived = (row.wire_bytes ?? 0) - whole + Math.min(bodyBytes ?? whole, whole);
  const end = clip(row.end_ms, untilMs);
  let others = 0;
  for (const other of load.requests) if (other !== row) others += arriving(other, start, end);
  return [
    ["transfer", load.downMs(Math.max(0, arrived - MSS_BYTES))],
    ["queueing", load.downMs(others)],
    ["window", 0],
  ];
}

function tcpHandshakeMs(load, row) {
  const connection = load.connection(row);
  if (connection?.syn_data_acked) return 0;
  return load.path.rtt_ms + SYN_RTO_MS * (2 ** (connection?.syn_retransmits ?? 0) - 1);
}

function overTls(row) {
  return row.url.startsWith("https:");
}

function firstBytes(row) {
  return Math.min(MSS_BYTES, row.wire_bytes ?? 0);
}

function arriving(row, start, end) {
  if (row.first_byte_ms === null) return 0;
  const [firstMs, lastMs] = [row.first_byte_ms, row.end_ms || end];
  const first = start <= firstMs && firstMs < end ? firstBytes(row) : 0;
  const common = Math.min(end, lastMs) - Math.max(start, firstMs);
  if (common <= 0) return first;
  return first + (((row.wire_bytes ?? 0) - firstBytes(row)) * common) / (lastMs - firstMs);
}

function* lay(request, parts, start, until) {
  let at = start;
  for (const [number, [component, leastMs]] of parts.entries()) {
    const end = number === parts.length - 1 ? until : Math.min(until, at + leastMs);
    if (end > at) yield { request, component, start: at, end };
    at = Math.max(at, end);
  }
}

class Walk {
  constructor(load, pltMs) {
    this.load = load;
    this.tasks = timetable(load);
    this.taskOf = new Map(this.tasks.map((task) => [task.request, task]));
    this.at = pltMs;
    this.segments = [];
  }

  back() {
    const seen = new Set();
    let row = this.arrival(this.last());
    let bodyBytes;
    while (row && !seen.has(row.index)) {
      seen.add(row.index);
      this.fetch(row, bodyBytes);
      [row, bodyBytes] = this.discoverer(row);
    }
    this.spend(this.segments.at(-1)?.request ?? 0, 0);
    return this.segments.reverse();
  }

  last() {
    const blocks = (row) => this.load.resources[row.index].blocks_load;
    const those = this.load.requests.filter(blocks);
    const blocking = those.length ? those : this.load.requests;
    const ended = blocking.filter((row) => row.end_ms !== null && this.settledMs(row) <= this.at + TOLERANCE_MS);
    const broken = blocking.filter((row) => row.end_ms === null && startedMs(row) < this.at);
    const last = most(ended, (row) => this.settledMs(row));
    const explained = last && this.settledMs(last) >= this.at - TOLERANCE_MS;
    if (!last || (broken.length && !explained)) {
      return most(broken.length ? broken : this.load.requests, (row) => times(row).at(-1));
    }
    return last;
  }

  arrival(row) {
    let place = this.tasks.findIndex((task) => task.request === row.index);
    if (place < 0 || Math.abs(this.tasks[place].end - this.at) > TOLERANCE_MS) return row;
    for (; ; place -= 1) {
      this.spend(this.tasks[place].request, this.tasks[place].start);
      if (!this.tasks[place].waited || place === 0) return this.load.byIndex.get(this.tasks[place].request);
    }
  }

  fetch(row, bodyBytes) {
    const segments = fetched(this.load, row, this.at, bodyBytes);
    if (!segments.length) return;
    this.spend(row.index, segments.at(-1).end);
    this.segments.push(...segments.reverse());
    this.at = segments.at(-1).start;
  }

  discoverer(row) {
    const above = this.load.initiator(row);
    if (!above) return [];
    const found = this.load.resources[row.index].initiator;
    const known = found?.resource === above.index ? { at_byte: 0, delay_ms: 0, after: null, ...found } : undefined;
    if (!known) return [this.arrival(above)];
    this.spend(row.index, this.at - known.delay_ms);
    const held = this.heldBy(known);
    if (held) return [this.arrival(held)];
    if (known.via === "style" || known.via === "script") return [this.arrival(above)];
    const streaming = above.end_ms === null || this.at < above.end_ms;
    return [above, streaming ? known.at_byte : undefined];
  }

  heldBy(known) {
    const row = known.after === null ? undefined : this.load.byIndex.get(known.after);
    if (!row || row.end_ms === null) return undefined;
    return Math.abs(this.settledMs(row) - this.at) <= TOLERANCE_MS ? row : undefined;
  }

  settledMs(row) {
    return this.taskOf.get(row.index)?.end ?? row.end_ms;
  }

  spend(request, start) {
    const from = Math.max(0, start);
    if (from >= this.at) return;
    this.segments.push({ request, component: "processing", start: from, end: this.at });
    this.at = from;
  }
}

// The first of those that have the most.
function most(rows, by) {
  return rows.reduce((found, row) => (found && by(found) >= by(row) ? found : row), undefined);
}

function timetable(load) {
  const processed = processedBy(load.resources);
  const arrived = load.requests.filter((row) => row.end_ms !== null && !row.error && processed.has(row.index));
  let free = 0;
  return arrived.sort((a, b) => a.end_ms - b.end_ms || a.index - b.index).map((row) => {
    const start = Math.max(free, row.end_ms);
    const waited = free > row.end_ms;
    free = start + load.resources[row.index].cpu_ms;
    return { request: row.index, start, end: free, waited };
  });
}

function processedBy(resources) {
  const asks = new Set();
  const redirects = new Set();
  for (const { initiator } of resources) {
    if (initiator && ["style", "script"].includes(initiator.via)) asks.add(initiator.resource);
    if (initiator?.via === "redirect") redirects.add(initiator.resource);
  }
  const runs = ({ kind }, index) => ["document", "frame", "style", "script"].includes(kind) && !redirects.has(index);
  const found = resources.flatMap((resource, index) => (resource.cpu_ms > 0 || asks.has(index) || runs(resource, index) ? [index] : []));
  return new Set(found);
}
