// Packets out of the simulator's lines: crates/sim/src/trace.rs writes them.

const LINE = /^ *(-?[\d.]+) (sent|arrived|full|lost|taken) +(up|down) +#(\d+) (.*)$/;
const MARKS = /, (ECT\(0\)|CE)$/;

// Every packet in the order in which they were sent: `{conn, up, sent, arrived, fate, kind, label, text}`.
// `arrived`: ms, null if it did not. `fate`: arrived, full (the queue was), lost, taken (by a middlebox), or sent (still
// under way at the end). `kind`: syn, data, ack or end, for colours.
export function packetsOf(lines) {
  const packets = [];
  const underWay = new Map();
  for (const line of lines) {
    const match = LINE.exec(line);
    if (!match) throw new Error(`no packet: ${line}`);
    const [, at, what, way, conn, written] = match;
    const text = written.replace(MARKS, "");
    const key = `${way} ${conn} ${text}`;
    if (what === "sent") {
      const packet = { conn: Number(conn), up: way === "up", sent: Number(at), arrived: null, fate: what, text };
      packets.push(Object.assign(packet, text.startsWith("Flags") ? ofTcp(text) : ofQuic(text)));
      if (!underWay.has(key)) underWay.set(key, []);
      underWay.get(key).push(packet);
    } else {
      // Packets that read the same arrive in the order in which they were sent; one is dropped as it is sent. A duplicate
      // arrives without having been sent.
      const alike = underWay.get(key);
      const packet = what === "arrived" ? alike?.shift() : alike?.pop();
      if (packet) Object.assign(packet, { fate: what, arrived: what === "arrived" ? Number(at) : null });
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
