// Packets out of the simulator's lines: crates/sim/src/trace.rs writes them.

const LINE = /^ *(-?[\d.]+) (sent|arrived|full|lost|taken) +(up|down) +#(\d+) (.*)$/;
const NUMBER = /, packet (\d+)$/;
const MARKS = /, (ECT\(0\)|CE)$/;

// Every packet in the order in which they were sent: `{conn, up, sent, arrived, fate, kind, label, text}`.
// `arrived`: ms, null if it did not. `fate`: arrived, full (the queue was), lost, taken (by a middlebox), or sent (still
// under way at the end). `kind`: syn, data, ack or end, for colours.
export function packetsOf(lines) {
  const packets = [];
  const underWay = new Map();
  const sentBy = new Map();
  for (const line of lines) {
    const match = LINE.exec(line);
    if (!match) throw new Error(`no packet: ${line}`);
    const [, at, what, way, conn, written] = match;
    const number = Number(NUMBER.exec(written)?.[1]);
    const text = written.replace(NUMBER, "").replace(MARKS, "");
    const key = `${way} ${conn} ${text}`;
    if (what === "sent") {
      const packet = { conn: Number(conn), up: way === "up", sent: Number(at), arrived: null, fate: what, text };
      packets.push(Object.assign(packet, text.startsWith("Flags") ? ofTcp(text) : ofQuic(text)));
      for (const [map, of] of [[underWay, key], [sentBy, conn]]) {
        if (!map.has(of)) map.set(of, []);
        map.get(of).push(packet);
      }
    } else if (what === "arrived") {
      // Packets that read the same arrive in the order in which they were sent. A duplicate arrives without having been
      // sent.
      const packet = underWay.get(key)?.shift();
      if (packet) Object.assign(packet, { fate: what, arrived: Number(at) });
    } else {
      // The line of one that was dropped says which of its connection's packets it was.
      const packet = sentBy.get(conn)?.[number - 1];
      const alike = underWay.get(key) ?? [];
      if (alike.includes(packet)) alike.splice(alike.indexOf(packet), 1);
      if (packet) packet.fate = what;
    }
  }
  return packets;
}

function ofTcp(text) {
  const flags = /^Flags \[([^\]]*)\]/.exec(text)[1];
  const length = Number(/, length (\d+)/.exec(text)[1]);
  const carried = length ? ` + ${length} B` : "";
  if (flags.includes("S")) return { kind: "syn", label: `${flags.includes(".") ? "SYN-ACK" : "SYN"}${carried}` };
  if (flags.includes("R")) return { kind: "end", label: "RST" };
  if (length) return { kind: "data", label: `${length} B${flags.includes("F") ? ", FIN" : ""}` };
  return flags.includes("F") ? { kind: "end", label: "FIN" } : { kind: "ack", label: "ACK" };
}

// Datagrams are written as their packets: `Initial:1200 + ZeroRtt:120`.
function ofQuic(text) {
  const kind = /^(Initial|Handshake|Retry)/.test(text) ? "syn" : Number(/:(\d+)/.exec(text)?.[1] ?? 0) > 100 ? "data" : "ack";
  return { kind, label: text.replaceAll(/(\w+):(\d+)/g, "$1 $2 B") };
}
