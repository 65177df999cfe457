// One interactive waterfall. Vega draws bars and axes (figures/panel.py); this gives them their data and
// answers mouse and keyboard. Text of a stranger's only ever becomes text, never markup.

const ROW_PX = 17;
const CONNECTION_COLOURS = 10;
const LEAST_DRAG_PX = 5;
const LEAST_S = 0.002;
const HEADROOM = 1.02;

class Waterfall {
  constructor(details, drawing) {
    this.details = details;
    this.drawing = drawing;
    this.rowPx = ROW_PX;
    this.views = {};
    this.selected = -1;
    this.read();
    this.build();
  }

  // The rows from top to bottom, each with what it did on each side.
  read() {
    const data = parsed(this.details.querySelector("script"));
    const { origins, labels } = parsed(document.getElementById(this.details.dataset.labels));
    this.rows = data.rows.map((place, index) => {
      const [url, origin, mime] = labels[place];
      return { number: index + 1, url, origin: origins[origin], mime };
    });
    this.sides = {};
    for (const [side, { name, plt, requests, path }] of Object.entries(data.sides)) {
      this.sides[side] = { name, plt, path };
      for (const [row, ...values] of requests) {
        const [connection, status, bytes] = values.slice(5);
        this.rows[row][side] = { moments: values.slice(0, 5), connection, status, bytes };
      }
      for (const [row] of path) (this.rows[row].critical ??= new Set()).add(side);
    }
    const moments = this.rows.flatMap((row) => Object.keys(this.sides).flatMap((side) => row[side]?.moments ?? []));
    const plts = Object.values(this.sides).map(({ plt }) => plt);
    this.end = HEADROOM * Math.max(...plts, moments.reduce((a, b) => Math.max(a, b), 0));
    this.seenFrom = 0;
    this.seenTo = this.end;
  }

  build() {
    const wide = this.details.clientWidth > 700;
    const sides = Object.entries(this.sides).map(([side, { name }]) => [side, name]);
    this.show = choice("Show", [["both", "both"], ...sides], wide ? "both" : "treatment");
    this.origin = choice("Origin", [["", `all ${new Set(this.rows.map((row) => row.origin)).size}`], ...this.origins()], "");
    this.colour = choice("Colour by", [["phase", "phase"], ["connection", "connection"]], "phase");
    this.marked = choice("Critical path", [["yes", "marked"], ["only", "nothing else"], ["no", "not marked"]], "yes");
    for (const field of [this.show, this.origin, this.colour, this.marked]) {
      field.select.addEventListener("change", () => this.draw());
    }
    const zoom = element("span", { className: "zoom" }, [
      button("−", "zoom out", () => this.scale(2)),
      button("+", "zoom in", () => this.scale(0.5)),
      button("whole load", "show the whole load", () => this.zoom(0, this.end)),
    ]);
    const fields = [this.show, this.origin, this.colour, this.marked].map((field) => field.label);
    this.count = element("output", { className: "soft" });
    this.legend = element("p", { className: "legend" });
    this.list = element("div", { className: "rows", tabIndex: 0 });
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Requests; arrow keys choose one, left and right move in time, + and − zoom");
    this.highlight = element("div", { className: "highlight", hidden: true });
    this.brush = element("div", { className: "brush", hidden: true });
    this.heads = {};
    this.panels = {};
    for (const [side] of sides) {
      this.heads[side] = element("div", { className: `head ${side}` });
      this.panels[side] = element("div", { className: `panel ${side}` });
      for (const each of [this.heads[side], this.panels[side]]) each.setAttribute("aria-hidden", "true");
    }
    this.body = element("div", { className: "body" }, [this.list, ...Object.values(this.panels), this.highlight, this.brush]);
    const heads = element("div", { className: "heads" }, [element("div"), ...Object.values(this.heads)]);
    this.sheet = element("div", { className: "sheet" }, [heads, this.body]);
    const tools = element("div", { className: "tools" }, [...fields, zoom, this.count]);
    this.details.querySelector(".mount").replaceChildren(tools, this.legend, this.sheet);
    this.listen();
  }

  // Origins by number of requests, the busiest first.
  origins() {
    const counts = new Map();
    for (const { origin } of this.rows) counts.set(origin, (counts.get(origin) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).map(([origin, count]) => [origin, `${origin} (${count})`]);
  }

  listen() {
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("blur", hideTip);
    this.body.addEventListener("pointermove", (event) => this.pointed(event));
    this.body.addEventListener("pointerdown", (event) => this.pointed(event));
    this.body.addEventListener("pointerleave", () => this.select(-1));
    this.body.addEventListener("dblclick", () => this.zoom(0, this.end));
    this.body.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    for (const panel of Object.values(this.panels)) this.drags(panel);
    new ResizeObserver(() => requestAnimationFrame(() => this.resize())).observe(this.sheet);
  }

  shown() {
    return this.show.select.value === "both" ? Object.keys(this.sides) : [this.show.select.value];
  }

  async draw() {
    delete this.details.dataset.drawn;
    const origin = this.origin.select.value;
    const only = this.marked.select.value === "only";
    this.seen = this.rows.filter((row) => (!origin || row.origin === origin) && (!only || row.critical));
    this.select(-1);
    this.count.textContent = `${this.seen.length} of ${this.rows.length} requests`;
    this.legend.replaceChildren(...legend(this.drawing, this.colour.select.value));
    this.sheet.dataset.show = this.show.select.value;
    this.sheet.style.setProperty("--row", `${this.rowPx}px`);
    this.sheet.classList.toggle("dense", this.rowPx < 6);
    this.list.replaceChildren(...this.seen.map((row, index) => this.option(row, index)));
    await Promise.all(this.shown().map((side) => this.drawSide(side)));
    this.width = this.sheet.clientWidth;
    this.details.dataset.drawn = "yes";
  }

  async drawSide(side) {
    const { panel, axis } = this.drawing;
    const other = Object.keys(this.sides).find((name) => name !== side);
    const width = this.panels[side].clientWidth;
    if (!this.views[side]) {
      const plt = element("strong", { textContent: this.sides[side].name });
      const place = element("div");
      this.heads[side].replaceChildren(plt, ` PLT ${seconds(this.sides[side].plt)}`, place);
      const drawn = await Promise.all([embedded(this.panels[side], { ...panel, width, height: 1 }), embedded(place, { ...axis, width, height: 1 })]);
      this.views[side] = drawn;
    }
    const [bars, ticks] = this.views[side];
    bars.data("rects", this.rects(side)).data("links", this.links(side)).data("crosses", this.crosses(side));
    bars.data("lines", [
      { start: this.sides[other].plt / 1000, fill: "var(--soft)", dash: [4, 3] },
      { start: this.sides[side].plt / 1000, fill: "var(--ink)", dash: [1, 0] },
    ]);
    bars.signal("row_count", Math.max(1, this.seen.length)).height(Math.max(1, this.seen.length) * this.rowPx);
    await Promise.all([bars, ticks.height(0)].map((view) => this.timed(view).width(width).runAsync()));
  }

  rects(side) {
    const byConnection = this.colour.select.value === "connection";
    const bars = this.seen.flatMap((row, index) => {
      const request = row[side];
      return !request ? [] : phases(request.moments).map(([phase, start, end]) => ({
        start: start / 1000,
        end: end / 1000,
        top: index + 0.14,
        bottom: index + 0.86,
        fill: byConnection && phase > 0 ? connectionColour(request.connection) : `var(--phase-${phase})`,
        opacity: byConnection && phase === 2 ? 0.45 : 1,
      }));
    });
    const path = this.path(side).map(([index, start, end]) => ({
      start: start / 1000, end: end / 1000, top: index + 0.74, bottom: index + 1, fill: "var(--ink)", opacity: 1,
    }));
    return [...bars, ...path];
  }

  // The stretches of the critical path whose rows are seen: index of the row, start, end.
  path(side) {
    if (this.marked.select.value === "no") return [];
    const places = new Map(this.seen.map((row, index) => [row.number - 1, index]));
    return this.sides[side].path.filter(([row]) => places.has(row))
      .map(([row, , start, end]) => [places.get(row), start, end]);
  }

  links(side) {
    const path = this.path(side);
    const steps = path.slice(1).map((next, index) => [path[index], next]);
    return steps.filter(([before, after]) => before[0] !== after[0] && Math.abs(before[2] - after[1]) < 1)
      .map(([before, after]) => ({ start: after[1] / 1000, top: before[0] + 0.87, bottom: after[0] + 0.87 }));
  }

  crosses(side) {
    return this.seen.flatMap((row, index) => {
      const moments = row[side]?.moments;
      if (!moments || moments[4] !== null) return [];
      return [{ start: moments.reduce((a, b) => Math.max(a, b), 0) / 1000, top: index + 0.5, fill: "var(--bad)" }];
    });
  }

  option(row, index) {
    const option = element("div", { className: "row", id: `${this.details.id}-row-${index}` });
    option.classList.toggle("critical", Boolean(row.critical) && this.marked.select.value !== "no");
    option.setAttribute("role", "option");
    option.setAttribute("aria-label", this.words(row));
    const [host, file] = shortUrl(row.url);
    const parts = [["span", "number", row.number], ["bdi", "host", host], ["bdi", "file", file]];
    option.append(...parts.map(([name, className, textContent]) => element(name, { className, textContent })));
    return option;
  }

  // A row in words, for those who hear the page.
  words(row) {
    const parts = this.shown().map((side) => {
      const request = row[side];
      if (!request) return `${this.sides[side].name}: not asked for`;
      const [start, end] = [first(request.moments), request.moments[4]];
      const times = end === null ? `from ${seconds(start)}, broke off` : `${seconds(start)} to ${seconds(end)}`;
      return `${this.sides[side].name}: ${times}${row.critical?.has(side) ? ", on the critical path" : ""}`;
    });
    return `${row.number}. ${row.url}. ${parts.join("; ")}`;
  }

  select(index, at) {
    const chosen = index >= 0 && index < this.seen.length;
    this.list.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    this.selected = chosen ? index : -1;
    this.highlight.hidden = !chosen;
    this.list.removeAttribute("aria-activedescendant");
    if (!chosen) return hideTip();
    const option = this.list.children[index];
    option.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", option.id);
    this.highlight.style.top = `${index * this.rowPx}px`;
    showTip(this.tip(this.seen[index]), at ?? option.getBoundingClientRect());
  }

  tip(row) {
    const sides = Object.keys(this.sides);
    const cells = (name, value) => [name, ...sides.map((side) => (row[side] ? value(row[side]) : "–"))];
    const lines = [
      cells("starts", ({ moments }) => seconds(first(moments))),
      ...this.drawing.phases.map((name, phase) => cells(name, ({ moments }) => lasted(moments[phase], moments[phase + 1]))),
      cells("ends", ({ moments }) => (moments[4] === null ? "broke off" : seconds(moments[4]))),
      cells("connection", ({ connection }) => connection ?? "–"),
      cells("status, bytes", ({ status, bytes }) => `${status ?? "–"}, ${bytes ?? "–"}`),
      ["critical path", ...sides.map((side) => (row.critical?.has(side) ? "yes" : "no"))],
    ];
    const head = ["", ...sides.map((side) => this.sides[side].name)];
    return [
      element("bdi", { className: "url", textContent: `${row.number}. ${row.url}` }),
      element("span", { className: "soft", textContent: row.mime }),
      element("table", {}, [head, ...lines].map((line) => element("tr", {}, line.map((text) => element("td", { textContent: text }))))),
    ];
  }

  pointed(event) {
    if (!this.brush.hidden) return;
    const top = this.body.getBoundingClientRect().top;
    this.select(Math.floor((event.clientY - top) / this.rowPx), { right: event.clientX, bottom: event.clientY });
  }

  drags(panel) {
    let from = null;
    const place = (event) => {
      const box = panel.getBoundingClientRect();
      return Math.min(Math.max(event.clientX - box.left, 0), box.width);
    };
    panel.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      from = place(event);
      panel.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    panel.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const [left, right] = [from, place(event)].sort((a, b) => a - b);
      this.brush.hidden = right - left < LEAST_DRAG_PX;
      this.brush.style.left = `${panel.offsetLeft + left}px`;
      this.brush.style.width = `${right - left}px`;
    });
    panel.addEventListener("pointerup", (event) => {
      const [left, right] = [from ?? 0, place(event)].sort((a, b) => a - b);
      const dragged = from !== null && right - left >= LEAST_DRAG_PX;
      from = null;
      this.brush.hidden = true;
      const width = panel.clientWidth;
      if (dragged) this.zoom(this.at(left / width), this.at(right / width));
    });
  }

  at(share) {
    return this.seenFrom + share * (this.seenTo - this.seenFrom);
  }

  // Zooms by a factor around a share of what is seen.
  scale(factor, share = 0.5) {
    const span = (this.seenTo - this.seenFrom) * factor;
    const from = this.at(share) - span * share;
    this.zoom(from, from + span);
  }

  zoom(from, to) {
    const span = Math.min(this.end, Math.max(to - from, LEAST_S * 1000));
    this.seenFrom = Math.min(Math.max(0, from), this.end - span);
    this.seenTo = this.seenFrom + span;
    return this.run(Object.values(this.views).flat());
  }

  async run(views) {
    delete this.details.dataset.drawn;
    await Promise.all(views.map((view) => this.timed(view).runAsync()));
    this.details.dataset.drawn = "yes";
  }

  timed(view) {
    return view.signal("from_s", this.seenFrom / 1000).signal("to_s", this.seenTo / 1000);
  }

  wheel(event) {
    const panel = event.target.closest(".panel");
    if (!panel || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    const box = panel.getBoundingClientRect();
    this.scale(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }

  key(event) {
    const last = this.seen.length - 1;
    const step = 0.1 * (this.seenTo - this.seenFrom);
    const actions = {
      ArrowDown: () => this.choose(Math.min(last, this.selected + 1)),
      ArrowUp: () => this.choose(Math.max(0, this.selected - 1)),
      PageDown: () => this.choose(Math.min(last, this.selected + 20)),
      PageUp: () => this.choose(Math.max(0, this.selected - 20)),
      Home: () => this.choose(0),
      End: () => this.choose(last),
      ArrowLeft: () => this.zoom(this.seenFrom - step, this.seenTo - step),
      ArrowRight: () => this.zoom(this.seenFrom + step, this.seenTo + step),
      "+": () => this.scale(0.5),
      "-": () => this.scale(2),
      Escape: () => this.zoom(0, this.end),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  choose(index) {
    this.list.children[index]?.scrollIntoView({ block: "nearest" });
    this.select(index);
  }

  async resize() {
    if (this.sheet.clientWidth && this.sheet.clientWidth !== this.width) await this.draw();
  }
}
