// The page: controls, address, tour; what changes is simulated and drawn in the next frame.

import { COMPONENTS, criticalPath } from "./critical_path.mjs";
import { PHASES, SHOWN_PACKETS, ladder, pathBars, pathTable, placeWaterfall, rowOrder, seconds, signed, waterfall } from "./draw.mjs";
import { jobOf } from "./job.mjs";
import { packetsOf } from "./packets.mjs";
import { CHOICES, DEFAULTS, MODES, RANGES, command, read, settled, write } from "./settings.mjs";
import { Simulator } from "./simulator.mjs";
import { STEPS } from "./tour.mjs";

const HASH_DELAY_MS = 250;
const PAPER_RTTS = [20, 100, 200];
const LEGEND_OF_PATH = '<span><i style="background:var(--ink)"></i>critical path</span>';

const CONTROLS = [
  { name: "page", label: "Page", menu: (page) => (page === "one" ? "one request" : page) },
  { name: "baseline", label: "Baseline", menu: (mode) => MODES[mode].label },
  { name: "treatment", label: "Treatment", menu: (mode) => MODES[mode].label },
  { name: "scheme", label: "Scheme", menu: (scheme) => (scheme === "http" ? "http: in the clear" : "https: TLS") },
  { name: "http", label: "HTTP over TLS", menu: (http) => (http === "2" ? "HTTP/2" : "HTTP/1.1") },
  { name: "rtt", label: "RTT", said: (rtt) => `${rtt} ms` },
  { name: "down", label: "Rate down", said: rate },
  { name: "up", label: "Rate up", said: rate },
  { name: "loss", label: "Loss, each way", said: (loss) => `${Number((loss * 100).toFixed(2))} %` },
  { name: "queue", label: "Queue", said: (queue) => queue.replace(/p$/, " packets").replace(/^pie|^codel/, (name) => ({ pie: "PIE", codel: "CoDel" })[name]) },
  { name: "seed", label: "Seed" },
];

function rate(text) {
  return text.replace("kbit", " kbit/s").replace("mbit", " Mbit/s");
}

const at = (id) => document.getElementById(id);
const fields = {};
const outputs = {};
let settings = { ...DEFAULTS };
let step = 0;
let simulator;
let profiles;
let published;
let sides = [];
let pending = false;
let connection = 0;
let hashTimer;

// One load under each treatment, with the lines of `packets` packets of the connection that is chosen. `known`: loads that
// were made before; one that is asked for again is not simulated again.
function loads(chosen, packets = 0, known = []) {
  const made = [];
  for (const mode of [chosen.baseline, chosen.treatment]) {
    const job = jobOf(chosen, mode, profiles[chosen.page].bodyBytes);
    const asked = { page: chosen.page, job, connection, packets };
    const key = JSON.stringify(asked);
    made.push([...known, ...made].find((side) => side.key === key) ?? { key, ...loaded(asked) });
  }
  return made;
}

// Its record as text and parsed, critical path, and lines of packets.
function loaded({ page, job, connection: of, packets }) {
  const profile = profiles[page];
  const { record: text, lines } = simulator.load(job.scheme, profile.text, job, of, packets);
  const record = JSON.parse(text);
  return { name: job.mode, text, record, lines, segments: criticalPath(record, profile.page, job.path) };
}

function draw() {
  pending = false;
  try {
    sides = loads(settings, SHOWN_PACKETS, sides);
  } catch (error) {
    at("headline").textContent = `error: ${error.message}`;
    drawn();
    return;
  }
  // All widths first: to ask for one after a change lays everything out.
  const [bars, waterfalls, packets] = [at("bars").clientWidth, panelWidth("waterfalls"), panelWidth("packets")];
  at("headline").innerHTML = headline();
  at("bars").innerHTML = pathBars(sides, Math.max(280, bars));
  at("parts").innerHTML = pathTable(sides);
  const ends = sides.flatMap(({ record }) => [record.plt_ms ?? 0, ...record.requests.map((row) => row.end_ms ?? 0)]);
  const order = rowOrder(sides[0].record.requests);
  panels("waterfalls", (side, region) => placeWaterfall(region, waterfall(side, order, 1.02 * Math.max(1, ...ends), waterfalls)));
  offerConnections();
  panels("packets", (side, region) => { region.innerHTML = ladder(side.name, packetsOf(side.lines), connection, packets); });
  at("command").textContent = command(settings);
  drawn();
}

// Counts drawings, for tests.
function drawn() {
  const { dataset } = document.documentElement;
  dataset.drawn = Number(dataset.drawn ?? 0) + 1;
}

// The connections of both loads, in the menu.
function offerConnections() {
  const rows = new Map(sides.toReversed().flatMap(({ record }) => record.connections.map((row) => [row.connection, row.origin])));
  const numbers = [...rows.keys()].sort((a, b) => a - b);
  const names = numbers.map((number) => `#${number} ${rows.get(number)}`);
  const menu = at("connection");
  if (menu.names !== names.join("\n")) {
    menu.replaceChildren(...numbers.map((number, index) => new Option(names[index], number)));
    menu.names = names.join("\n");
  }
  if (numbers.length && !rows.has(connection)) {
    connection = numbers[0];
    sides = loads(settings, SHOWN_PACKETS);
  }
  menu.value = connection;
}

function panelWidth(id) {
  const box = at(id);
  const columns = getComputedStyle(box).gridTemplateColumns.split(" ").length;
  return Math.max(280, Math.floor((box.clientWidth - 16 * (columns - 1)) / columns) - 14);
}

// A panel for each treatment; they stay, so that they keep their place where one has scrolled.
function panels(id, place) {
  const box = at(id);
  while (box.children.length < sides.length) {
    const panel = document.createElement("div");
    panel.innerHTML = '<h3></h3><div class="scroll drawing" tabindex="0" role="region"></div>';
    box.append(panel);
  }
  for (const [index, side] of sides.entries()) {
    const [title, region] = box.children[index].children;
    title.textContent = `${index ? "Treatment" : "Baseline"}: ${side.name}, PLT ${seconds(side.record.plt_ms)}`;
    region.setAttribute("aria-label", title.textContent);
    place(side, region);
  }
}

function headline() {
  const [before, after] = sides.map(({ record }) => record.plt_ms);
  const words = sides.map(({ name, record }) => {
    const failed = record.status === "ok" ? "" : ` (failed: ${escaped(record.error ?? "")})`;
    return `<span><b>${escaped(name)}</b> ${seconds(record.plt_ms)}${failed}</span>`;
  });
  if (before === null || after === null) return words.join("");
  const improvement = ((before - after) / before) * 100;
  words.push(`<span class="effect">improvement <b>${signed(improvement)} %</b> (${signed((before - after))} ms)</span>`);
  return words.join("");
}

function escaped(text) {
  return text.replace(/[&<>]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[character]);
}

// Table 1 of the paper, a row at a time so that the page answers meanwhile.
async function paper(stepSettings) {
  const head = ["page", "RTT", "PLT tcp", "PLT tfo", "improvement", "the paper's"];
  at("paper").innerHTML = `<div class="scroll" tabindex="0" role="region" aria-label="The paper's table"><table><caption>Table 1 of the paper, simulated: 4 Mbit/s down, 256 kbit/s up, http, warm cookies</caption><thead><tr>${head.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody></tbody></table></div>`;
  const body = at("paper").querySelector("tbody");
  for (const page of ["amazon", "nytimes", "wsj", "wikipedia"]) {
    for (const rtt of PAPER_RTTS) {
      if (!body.isConnected) return;
      const [tcp, tfo] = loads({ ...stepSettings, page, rtt }).map(({ record }) => record.plt_ms);
      const theirs = published.find((row) => row.page === page && row.rtt_ms === rtt);
      const improved = (one, two) => `${signed(((one - two) / one) * 100)} %`;
      const cells = [`${rtt} ms`, seconds(tcp), seconds(tfo), improved(tcp, tfo), improved(theirs.tcp_ms, theirs.tfo_ms)];
      body.insertAdjacentHTML("beforeend", `<tr><th scope="row">${page}</th>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`);
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
  at("paper").dataset.complete = "yes";
}

function change(changes) {
  const wished = { ...settings, ...changes };
  // To choose HTTP/2 is to choose TLS.
  if (changes.http === "2" && Object.keys(changes).length === 1) wished.scheme = "https";
  settings = settled(wished);
  const forced = settings.scheme !== wished.scheme;
  at("note").textContent = forced ? "Scheme: https, because a treatment is a way to speak TLS." : "";
  show();
}

// Controls say what is set; the drawing follows in the next frame, once however many changes came before it.
function show() {
  for (const control of CONTROLS) {
    const value = settings[control.name];
    const field = fields[control.name];
    if (!control.said) {
      if (field.value !== String(value)) field.value = value;
      continue;
    }
    field.value = CHOICES[control.name] ? CHOICES[control.name].indexOf(value) : value;
    outputs[control.name].textContent = control.said(value);
    field.setAttribute("aria-valuetext", control.said(value));
  }
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => history.replaceState(null, "", address()), HASH_DELAY_MS);
  if (!pending && simulator) {
    pending = true;
    requestAnimationFrame(draw);
  }
}

function address() {
  return `#${write(settings)}${step ? `&step=${step}` : ""}`;
}

function buildControls() {
  for (const { name, label, menu, said } of CONTROLS) {
    const box = document.createElement("div");
    const text = Object.assign(document.createElement("label"), { textContent: label, htmlFor: `set-${name}` });
    const field = document.createElement(menu ? "select" : "input");
    field.id = `set-${name}`;
    if (menu) {
      for (const choice of CHOICES[name]) field.add(new Option(menu(choice), choice));
    } else {
      field.type = said ? "range" : "number";
      [field.min, field.max] = RANGES[name] ?? [0, CHOICES[name].length - 1];
      field.step = 1;
    }
    box.append(text, field);
    if (said) {
      outputs[name] = Object.assign(document.createElement("output"), { htmlFor: field.id });
      box.append(outputs[name]);
    }
    field.addEventListener("input", () => {
      const [least, most] = RANGES[name] ?? [];
      if (least === undefined) return change({ [name]: said ? CHOICES[name][field.value] : field.value });
      const value = Number(field.value);
      const bad = field.value === "" || !Number.isInteger(value) || value < least || value > most;
      field.setAttribute("aria-invalid", bad);
      if (bad) {
        at("note").textContent = `${label}: not a whole number from ${least} to ${most}; ${settings[name]} stays.`;
        return undefined;
      }
      return change({ [name]: value });
    });
    fields[name] = field;
    at("controls").append(box);
  }
  at("controls").addEventListener("submit", (event) => event.preventDefault());
}

function buildTour() {
  const box = document.querySelector("#tour .steps");
  for (const [index, { title }] of STEPS.entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: `${index + 1}. ${title}` });
    button.addEventListener("click", () => go(index + 1));
    box.append(button);
  }
}

// A step of the tour, from 1; 0: none. `keeps`: settings that the address has.
function go(number, keeps) {
  step = number;
  for (const [index, button] of [...document.querySelectorAll("#tour .steps button")].entries()) {
    if (index + 1 === number) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  const chosen = STEPS[number - 1];
  at("step").textContent = chosen ? chosen.text : "Six steps, from one request to the paper's table. Choose one, or set page, path and treatments yourself.";
  at("paper").replaceChildren();
  delete at("paper").dataset.complete;
  change(keeps ?? chosen?.set ?? {});
  if (chosen?.table) paper({ ...settings, ...chosen.set });
}

function copies(button, text) {
  at(button).addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      at("copied").textContent = "Copied.";
    } catch {
      at("copied").textContent = `The browser does not allow copying here: ${text()}`;
    }
  });
}

function fromAddress() {
  const [, number] = /(?:^#|&)step=([1-6])(?=&|$)/.exec(location.hash) ?? [];
  const { settings: found, refused } = read(location.hash.replace(/(^#|&)step=[^&]*/, "$1"));
  const isEmpty = !/=/.test(location.hash.replace(/(^#|&)step=[^&]*/, ""));
  go(Number(number ?? 0), isEmpty && number ? undefined : found);
  if (refused.length) at("note").textContent = `Left out of the address, as no values that the playground has: ${refused.join(", ")}.`;
}

// `data`: profiles as text by name, the paper's table, and the module, compressed and in base64.
async function start(data) {
  published = data.paper;
  const parsed = ([name, text]) => {
    const page = JSON.parse(text);
    return [name, { text, page, bodyBytes: page.resources.reduce((sum, { body_bytes: bytes }) => sum + bytes, 0) }];
  };
  profiles = Object.fromEntries(Object.entries(data.profiles).map(parsed));
  const packed = Uint8Array.from(atob(data.wasm), (character) => character.charCodeAt(0));
  const unpacked = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  simulator = await Simulator.from(await unpacked.arrayBuffer());
}

buildControls();
buildTour();
at("legend").innerHTML = Object.entries(PHASES).map(([phase, name]) => `<span><i style="background:var(--${phase})"></i>${name}</span>`).join("") + LEGEND_OF_PATH;
copies("copy", () => command(settings));
copies("share", () => location.href.split("#")[0] + address());
at("connection").addEventListener("change", () => {
  connection = Number(at("connection").value);
  show();
});
addEventListener("hashchange", fromAddress);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== width) show();
  width = innerWidth;
});
// What a test asks: the texts of both records under any settings.
globalThis.playground = { records: (chosen) => loads({ ...DEFAULTS, ...chosen }).map(({ text }) => text), components: COMPONENTS };
try {
  await start(JSON.parse(at("data").textContent));
  fromAddress();
} catch (error) {
  at("headline").textContent = `error: the simulator does not start: ${error.message}. hint: use a browser of 2023 or later, with WebAssembly and DecompressionStream`;
}
