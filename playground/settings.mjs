// What is chosen: named and written as the flags of `firstflight run`, in the address, and in the command that is shown.

export const MODES = {
  tcp: { label: "tcp: nothing rides in the first flight", secure: false },
  tfo: { label: "tfo: the request in the SYN", secure: false },
  tls12: { label: "tls12: two round trips of TLS", secure: true },
  resumption: { label: "resumption: TLS 1.3 with a ticket", secure: true },
  "early-data": { label: "early-data: the request behind the ClientHello", secure: true },
  "tfo+early-data": { label: "tfo+early-data: both, in the SYN", secure: true },
  quic: { label: "quic: one round trip for transport and TLS", secure: true },
  "quic-0rtt": { label: "quic-0rtt: the request in the first datagrams", secure: true },
};

const RATES = [
  "64kbit", "128kbit", "256kbit", "512kbit", "1mbit", "2mbit", "4mbit", "8mbit", "16mbit", "32mbit", "64mbit",
  "100mbit", "unlimited",
];

// Every value that a setting may have, in the order of its slider or menu; RTT and seed are whole numbers.
export const CHOICES = {
  page: ["one", "amazon", "nytimes", "wsj", "wikipedia"],
  down: RATES,
  up: RATES,
  loss: ["0", "0.001", "0.002", "0.005", "0.01", "0.02", "0.03", "0.05", "0.1", "0.2"],
  queue: ["5p", "10p", "20p", "50p", "100p", "200p", "500p", "1000p", "unlimited", "codel", "pie"],
  scheme: ["http", "https"],
  http: ["1.1", "2"],
  baseline: Object.keys(MODES),
  treatment: Object.keys(MODES),
};

export const RANGES = { rtt: [1, 600], seed: [0, 999_999] };

// The paper's path, and the page that shows most on one screen.
export const DEFAULTS = {
  page: "wikipedia", rtt: 100, down: "4mbit", up: "256kbit", loss: "0", queue: "1000p", seed: 1, scheme: "http",
  http: "1.1", baseline: "tcp", treatment: "tfo",
};

// Modes that are ways to speak TLS need https, and HTTP/2 is spoken over TLS alone: `firstflight run` refuses both too.
export function settled(settings) {
  const secure = [settings.baseline, settings.treatment].some((mode) => MODES[mode].secure);
  if (secure && settings.scheme !== "https") return { ...settings, scheme: "https" };
  return settings.scheme === "http" && settings.http === "2" ? { ...settings, http: "1.1" } : settings;
}

// The part of an address behind #, from which `read` makes the same settings.
export function write(settings) {
  const { baseline, treatment, ...others } = settings;
  return [...Object.entries(others).map(([key, value]) => `${key}=${value}`), `mode=${baseline},${treatment}`].join("&");
}

// Settings out of the part of an address behind #, and what of it was left out because it is no value of its key.
export function read(hash) {
  const settings = { ...DEFAULTS };
  const refused = [];
  for (const part of hash.replace(/^#/, "").split("&").filter(Boolean)) {
    const [key, value = ""] = part.split("=");
    const pairs = key === "mode" ? [["baseline", value.split(",")[0]], ["treatment", value.split(",")[1] ?? ""]] : [[key, value]];
    for (const [name, one] of pairs) {
      if (CHOICES[name]?.includes(one)) settings[name] = one;
      else if (inRange(name, one)) settings[name] = Number(one);
      else refused.push(part);
    }
  }
  const kept = settled(settings);
  if (kept.scheme !== settings.scheme && hash.includes("scheme=")) refused.push(`scheme=${settings.scheme}`);
  return { settings: kept, refused: [...new Set(refused)] };
}

function inRange(name, text) {
  if (!Object.hasOwn(RANGES, name) || !/^\d{1,9}$/.test(text)) return false;
  const [least, most] = RANGES[name];
  return least <= Number(text) && Number(text) <= most;
}

// The command that makes the same loads.
export function command(settings) {
  const { rtt, down, up, loss, queue, seed, scheme, http, baseline, treatment } = settings;
  const page = settings.page === "one" ? "playground/one.json" : settings.page;
  const modes = baseline === treatment ? baseline : `${baseline},${treatment}`;
  return (
    `firstflight run ${page} --engine simulate --repeats 1 --rtt ${rtt} --down ${down} --up ${up} --loss ${loss} ` +
    `--queue ${queue} --seed ${seed} --scheme ${scheme} --http ${http} --mode ${modes}`
  );
}
