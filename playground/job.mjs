// The job of a simulated load, as python/firstflight/engines/simulate.py makes it, and the seed that
// python/firstflight/experiment/schedule.py gives it. tests/unit/test_playground.py holds both to Python's.

// No variant that kernels do not have (`what_if = "off"`).
const TODAY = {
  negative_cache: null, one_time_cookies: null, client_cookies: false, unproven: null, more_syn_segments: 0, early_data: null,
};

// The first repeat of a page on a path under a mode. `bodyBytes`: of all bodies of the page.
export function jobOf(settings, mode, bodyBytes) {
  const path = {
    topology: "access",
    rtt_ms: settings.rtt,
    down_bps: bps(settings.down),
    up_bps: bps(settings.up),
    queue: queue(settings.queue),
    loss: Number(settings.loss),
    jitter_ms: 0,
    reorder: false,
    duplicate: 0,
    ecn: false,
  };
  const limitMs = timeLimitMs(path, bodyBytes);
  return {
    scheme: settings.scheme,
    tls: { post_quantum: true, http: settings.http, certificate_bytes: null },
    ip: "4",
    path: { ...path, seed: seedOf(settings.seed, settings.page, path, 1) },
    origin_rtt: "path",
    lookups: false,
    priorities: "none",
    mode,
    cookies: "warm",
    keep_alive: true,
    timeout_ms: limitMs,
    request_timeout_ms: Math.floor(limitMs / 4),
    initial_window: 10,
    congestion_control: "cubic",
    what_if: TODAY,
    keep: "all",
  };
}

// Bit/s of a rate as flags write it; null: unlimited.
export function bps(rate) {
  if (rate === "unlimited") return null;
  return rate.endsWith("mbit") ? 1_000_000 * parseInt(rate) : 1_000 * parseInt(rate);
}

function queue(text) {
  return text.endsWith("p") ? { packets: parseInt(text) } : text;
}

function timeLimitMs(path, bodyBytes) {
  const transferMs = path.down_bps === null ? 0 : (bodyBytes * 8_000) / path.down_bps;
  return roundHalfToEven(120_000 + 300 * path.rtt_ms + 4 * transferMs);
}

function roundHalfToEven(number) {
  const below = Math.floor(number);
  const rest = number - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}

// What decides chance in a load: one number for each page, path and repeat.
export function seedOf(seed, page, path, repeat) {
  const cell = `${page}-r${decimal(path.rtt_ms)}-d${mbps(path.down_bps)}-u${mbps(path.up_bps)}-${path.topology}`;
  const digest = sha256(new TextEncoder().encode(`(${seed}, 'path', '${cell}', ${repeat})`));
  return firstOfMersenneTwister(digest[1], digest[0]);
}

function mbps(rate) {
  return rate === null ? "inf" : decimal(rate / 1e6);
}

// As Python's `:.12g` writes what rates and times are here.
function decimal(number) {
  return String(Number(number.toPrecision(12)));
}

// The digest as eight words (FIPS 180-4). By hand: `crypto.subtle` answers later, and not in a file that is opened.
export function sha256(bytes) {
  const [constants, hash] = sha256Constants();
  const padded = new Uint8Array(((bytes.length + 8) >> 6 << 6) + 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 4, bytes.length * 8);
  const rotated = (word, by) => (word >>> by) | (word << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    const words = Array.from({ length: 16 }, (_, index) => view.getUint32(block + 4 * index));
    for (let index = 16; index < 64; index += 1) {
      const [early, late] = [words[index - 15], words[index - 2]];
      const first = rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3);
      const second = rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10);
      words.push((words[index - 16] + first + words[index - 7] + second) >>> 0);
    }
    let [a, b, c, d, e, f, g, h] = hash;
    for (let index = 0; index < 64; index += 1) {
      const first = (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + h;
      const one = (first + constants[index] + words[index]) >>> 0;
      const two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) >>> 0, c, b, a, (one + two) >>> 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => { hash[index] = (hash[index] + word) >>> 0; });
  }
  return hash;
}

// The first 32 bits of the fractions of the cube roots and the square roots of the first primes.
function sha256Constants() {
  const primes = [];
  for (let number = 2; primes.length < 64; number += 1) {
    if (primes.every((prime) => number % prime)) primes.push(number);
  }
  const fraction = (root, prime, power) => {
    const scale = 1n << BigInt(32 * power);
    let word = BigInt(Math.floor(root * 2 ** 32));
    while (word ** BigInt(power) > BigInt(prime) * scale) word -= 1n;
    while ((word + 1n) ** BigInt(power) <= BigInt(prime) * scale) word += 1n;
    return Number(word & 0xffffffffn);
  };
  const ofCubes = primes.map((prime) => fraction(Math.cbrt(prime), prime, 3));
  return [ofCubes, primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime), prime, 2))];
}

// The first 32 bits that Python's `random.Random(number)` gives, of a number of two words: MT19937 of Matsumoto and
// Nishimura, seeded with their `init_by_array`.
export function firstOfMersenneTwister(low, high) {
  const key = high ? [low, high] : [low];
  const state = new Uint32Array(624);
  state[0] = 19650218;
  const mixed = (index, factor) => Math.imul(state[index] ^ (state[index] >>> 30), factor);
  for (let index = 1; index < 624; index += 1) state[index] = mixed(index - 1, 1812433253) + index;
  let at = 1;
  const step = (factor, added) => {
    state[at] = (state[at] ^ mixed(at - 1, factor)) + added;
    at += 1;
    if (at === 624) [state[0], at] = [state[623], 1];
  };
  for (let turn = 0; turn < 624; turn += 1) step(1664525, key[turn % key.length] + (turn % key.length));
  for (let turn = 0; turn < 623; turn += 1) step(1566083941, -at);
  state[0] = 0x80000000;
  // Only the first word of the next state is asked for.
  const joined = (state[0] & 0x80000000) | (state[1] & 0x7fffffff);
  let word = state[397] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
  word ^= word >>> 11;
  word ^= (word << 7) & 0x9d2c5680;
  word ^= (word << 15) & 0xefc60000;
  return (word ^ (word >>> 18)) >>> 0;
}
