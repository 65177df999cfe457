// What the report does when it is looked at: figures are drawn, waterfalls once they come into sight; figures say
// what the mouse points at, and before printing all is opened and drawn to fit the paper.

const PAPER_PX = 900;
const LARGEST_PRINTED_ROW_PX = 12;
const LEAST_PRINTED_ROW_PX = 2.5;

const waterfalls = new Map();

function parsed(script) {
  return JSON.parse(script.textContent);
}

function element(name, properties = {}, children = []) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function button(text, label, act) {
  const made = element("button", { type: "button", textContent: text });
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

function choice(name, options, value) {
  const select = element("select", {}, options.map(([key, text]) => element("option", { value: key, textContent: text })));
  select.value = value;
  return { select, label: element("label", {}, [`${name} `, select]) };
}

function legend({ phases: names, path }, colour) {
  const swatch = (style, text) => element("span", {}, [element("i", { style: `background: ${style}` }), text]);
  const critical = swatch("var(--ink); height: .25em", path);
  if (colour === "phase") return [...names.map((name, index) => swatch(`var(--phase-${index})`, name)), critical];
  return [swatch("var(--phase-0)", names[0]), element("span", { textContent: "then a colour per connection, pale while it waits for the answer" }), critical];
}

function phases(moments) {
  return [0, 1, 2, 3].map((phase) => [phase, moments[phase], moments[phase + 1]])
    .filter(([, start, end]) => start !== null && end !== null && end > start);
}

function connectionColour(connection) {
  return connection === null ? "var(--soft)" : `var(--connection-${connection % CONNECTION_COLOURS})`;
}

function first(moments) {
  return moments.find((moment) => moment !== null) ?? null;
}

function seconds(ms) {
  return ms === null ? "–" : `${(ms / 1000).toFixed(3)} s`;
}

function lasted(start, end) {
  return start === null || end === null ? "–" : `${Math.max(0, end - start).toFixed(1)} ms`;
}

// A URL to recognise: its host, and the end of its path.
function shortUrl(url) {
  const [host, ...steps] = url.replace(/^[A-Za-z][\w+.-]*:\/\//, "").split(/[?#]/)[0].split("/").filter(Boolean);
  return [host ?? url, steps.length > 1 ? `/…/${steps.at(-1)}` : `/${steps.join("")}`];
}

async function embedded(place, spec) {
  const options = { ast: true, actions: false, renderer: "svg", tooltip: false, defaultStyle: false, mode: "vega-lite" };
  const { view } = await vegaEmbed(place, spec, options);
  return view;
}

async function drawFigure(figure) {
  const place = element("div");
  figure.append(place);
  await embedded(place, { ...parsed(figure.querySelector("script")), background: "transparent" });
  figure.dataset.drawn = "yes";
}

const tip = element("div", { className: "tip", hidden: true });
tip.setAttribute("aria-hidden", "true");

function showTip(content, { right, bottom }) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(right + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${bottom + 14 + height < innerHeight ? bottom + 14 : Math.max(4, bottom - height - 24)}px`;
}

function hideTip() {
  tip.hidden = true;
}

function waterfall(details) {
  if (!waterfalls.has(details)) waterfalls.set(details, new Waterfall(details, drawing));
  return waterfalls.get(details);
}

async function printed(details) {
  details.dataset.wasOpen ??= details.open ? "yes" : "";
  details.open = true;
  if (!details.matches(".waterfall")) return;
  const drawn = waterfall(details);
  drawn.rowPx = Math.min(LARGEST_PRINTED_ROW_PX, Math.max(LEAST_PRINTED_ROW_PX, PAPER_PX / drawn.rows.length));
  drawn.show.select.value = "both";
  await drawn.draw();
}

let printing = null;

// Opens and draws everything to fit the paper, once.
function print() {
  document.documentElement.classList.add("printing");
  printing ??= Promise.all([...figures, ...[...document.querySelectorAll("details")].map(printed)]);
  return printing;
}

function unprint() {
  document.documentElement.classList.remove("printing");
  printing = null;
  for (const details of document.querySelectorAll("details")) {
    details.open = details.dataset.wasOpen === "yes";
    delete details.dataset.wasOpen;
  }
  for (const drawn of waterfalls.values()) {
    drawn.rowPx = ROW_PX;
    drawn.draw();
  }
}

const drawing = document.getElementById("drawing") && parsed(document.getElementById("drawing"));
const figures = [...document.querySelectorAll("figure")].map(drawFigure);
document.body.append(tip);

const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting || !target.open) continue;
    sight.unobserve(target);
    waterfall(target).draw();
  }
}, { rootMargin: "200px" });

for (const details of document.querySelectorAll("details.waterfall")) {
  if (details.open) sight.observe(details);
  details.addEventListener("toggle", () => {
    if (details.open && !waterfalls.has(details)) waterfall(details).draw();
  });
}

for (const figure of document.querySelectorAll("figure")) {
  figure.addEventListener("pointermove", (event) => {
    const label = event.target.getAttribute("aria-label");
    if (label && event.target !== figure) showTip([label], { right: event.clientX, bottom: event.clientY });
    else hideTip();
  });
  figure.addEventListener("pointerleave", hideTip);
}

addEventListener("beforeprint", print);
addEventListener("afterprint", unprint);
addEventListener("scroll", hideTip, { passive: true });
window.firstflight = { print };
