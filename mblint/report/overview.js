"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const table = document.getElementById("launches");
const body = table.tBodies[0];
const rows = Array.from(body.rows);
const list = document.getElementById("list");
const page = document.getElementById("page");
const form = document.getElementById("filters");
const GIB = 2 ** 30;

// Elements are made, never parsed: no text of a repository can become markup.
function el(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const gib = (bytes) => (bytes / GIB).toFixed(1);
const plural = (count, word) => `${count} ${word}${count === 1 || word === "advice" ? "" : word.endsWith("ch") ? "es" : "s"}`;

// --- the list ---------------------------------------------------------------------------------------------------------

const tiles = Array.from(document.querySelectorAll(".tile"));
let chosen = "";

function matches(row) {
  const set = row.dataset;
  if (chosen && !set.tags.split(" ").includes(chosen)) return false;
  for (const name of ["gpu", "precision", "rule"]) {
    const wanted = form.elements[name].value;
    if (wanted && !set[name].split("\n").includes(wanted)) return false;
  }
  const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => set.text.includes(word));
}
function filter() {
  let shown = 0;
  for (const row of rows) {
    row.hidden = !matches(row);
    shown += row.hidden ? 0 : 1;
  }
  const active = chosen || form.elements.text.value || ["gpu", "precision", "rule"].some((name) => form.elements[name].value);
  form.querySelector("output").textContent = active ? `${shown} of ${plural(rows.length, "launch")}` : "";
  form.querySelector(".clear").hidden = !active;
  document.getElementById("nothing").hidden = shown > 0;
  for (const tile of tiles) tile.setAttribute("aria-pressed", String(tile.dataset.tag === chosen && chosen !== ""));
}
for (const tile of tiles) {
  tile.addEventListener("click", () => {
    chosen = chosen === tile.dataset.tag ? "" : tile.dataset.tag;
    filter();
  });
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.querySelector(".clear").addEventListener("click", () => {
  form.reset();
  chosen = "";
  filter();
});
for (const head of table.tHead.rows[0].cells) {
  head.querySelector("button").addEventListener("click", () => {
    const column = head.cellIndex;
    const numeric = head.classList.contains("number") || head.dataset.kind === "number";
    const before = head.getAttribute("aria-sort");
    const down = before === null ? numeric : before === "ascending";
    for (const other of head.parentElement.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = rows.map((row, index) => {
      const value = row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      return { row, index, value: numeric ? parseFloat(value) : value.toLowerCase(), empty: value === "" };
    });
    keyed.sort((a, b) => {
      if (a.empty || b.empty) return a.empty - b.empty || a.index - b.index; // what is not known stays below
      const order = numeric ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
      return (down ? -order : order) || a.index - b.index;
    });
    body.append(...keyed.map((each) => each.row));
  });
}
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  // The whole row leads to its page, unless somebody selects text or follows a link.
  if (row && !event.target.closest("a") && !String(window.getSelection())) location.hash = row.querySelector("a").hash;
});

// --- one launch -------------------------------------------------------------------------------------------------------

function fact(title, value) {
  if (value === null || value === undefined || value === "") return null;
  return el("div", { className: String(value).length > 16 ? "wide" : "" }, el("dt", {}, title), el("dd", {}, String(value)));
}
function facts(launch) {
  const [tp, pp, vp, cp, ep, etp, dp] = launch.sizes;
  const shape = launch.layers && launch.hidden ? `${launch.layers} layers, ${launch.hidden} wide` : launch.layers ? `${launch.layers} layers` : "";
  const ready = [
    ["model", launch.model], ["shape", shape], ["GPUs", [launch.gpus, launch.gpu].filter(Boolean).join(" × ")],
    ["TP", tp], ["PP", pp], ["VPP", vp], ["CP", cp], ["EP", ep], ["ETP", ep > 1 ? etp : null], ["DP", dp],
    ["micro batch", launch.micro], ["global batch", launch.global], ["sequence length", launch.sequence],
    ["precision", launch.precision], ["recompute", launch.recompute], ["adapters", launch.peft],
  ];
  return el("dl", { className: "facts" }, ready.map(([title, value]) => fact(title, value)));
}
function place(entry, primary) {
  const [before, marked, after] = entry.code;
  const code = before || marked || after ? [before.trimStart(), el("mark", {}, marked), after] : [];
  return el("pre", { className: primary ? "" : "related" },
    el("span", { className: "at" }, entry.place + (entry.message ? `  ${entry.message}` : "")), ...code);
}
function finding(entry) {
  const rule = entry.url ? el("a", { href: entry.url, rel: "noreferrer" }, `${entry.rule} ${entry.name}`) : `${entry.rule} ${entry.name}`;
  return el("article", { className: `finding ${entry.severity}` },
    el("h4", {}, entry.message),
    el("p", { className: "rule" }, el("b", { className: entry.severity === "error" ? "bad" : entry.severity === "warning" ? "near" : "" }, entry.severity), " · ", rule),
    entry.condition ? el("p", {}, `When ${entry.condition}.`) : null,
    entry.places.map((each, index) => place(each, index === 0)),
    entry.why ? el("p", {}, entry.why) : null,
    entry.fixes.length ? el("ul", {}, entry.fixes.map((fix) => el("li", {}, fix.title, el("span", { className: "dim" }, ` ${fix.safety}${fix.cost ? `; ${fix.cost}` : ""}`)))) : null);
}
const VERDICTS = { fits: ["good", "It fits."], close: ["near", "It is close to the limit."], "does not fit": ["bad", "It does not fit."] };

function bar(groups, full, capacity) {
  const made = svg("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", class: "bar", role: "img", "aria-label": "memory by kind" },
    svg("rect", { class: "rest", width: 1000, height: 20 }));
  let x = 0;
  for (const [name, size] of groups) {
    const width = (size / full) * 1000;
    const title = svg("title", {});
    title.textContent = `${name}: ${gib(size)} GiB`;
    made.append(svg("rect", { class: `g-${name}`, x, width, height: 20 }, title));
    x += width;
  }
  if (capacity) made.append(svg("line", { class: "limit", x1: (capacity / full) * 1000, x2: (capacity / full) * 1000, y1: 0, y2: 20 }));
  return made;
}
function swatch(name) {
  return svg("svg", { class: "kind", viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: `g-${name}`, width: 10, height: 10 }));
}
function memory(launch) {
  const held = launch.memory;
  const parts = [el("h3", {}, "Memory of the fullest GPU")];
  if (!held || held.total === null) {
    const missing = Object.entries(held?.missing ?? {});
    parts.push(el("p", { className: "dim" }, missing.length ? "No estimate: a value that it needs is not known." : "No estimate."));
    if (missing.length) parts.push(el("ul", {}, missing.map(([key, why]) => el("li", {}, el("code", {}, key), `: ${why}`))));
    return parts;
  }
  const groups = Object.entries(held.groups).filter(([, size]) => size > 0);
  const full = Math.max(held.total, (held.capacity ?? 0) * 1.15);
  const [style, words] = VERDICTS[held.verdict] ?? ["dim", ""];
  const room = held.capacity ? ` of ${gib(held.capacity)} GiB that one ${launch.gpu} holds` : " GiB";
  parts.push(el("p", {}, el("b", {}, gib(held.total)), room + ". ", el("b", { className: style }, words), held.because ? el("span", { className: "dim" }, ` ${held.because}.`) : null,
    held.low ? el("span", { className: "dim" }, ` With the estimate's error: ${gib(held.low)} to ${gib(held.high)} GiB.`) : null));
  parts.push(el("div", { className: "big" }, bar(groups, full, held.capacity)));
  parts.push(el("ul", { className: "legend" }, groups.map(([name, size]) => el("li", {}, swatch(name), `${name} `, el("b", {}, gib(size))))));
  const components = Object.entries(held.components).filter(([, size]) => size > 0);
  parts.push(el("details", {}, el("summary", {}, "Components and stages"), el("div", { className: "beside" },
    el("table", { className: "inner" }, el("thead", {}, el("tr", {}, el("th", {}, "component"), el("th", { className: "number" }, "GiB"))),
      el("tbody", {}, components.map(([name, size]) => el("tr", {}, el("td", {}, name), el("td", { className: "number" }, gib(size)))))),
    held.stages.length > 1 ? el("table", { className: "inner" },
      el("thead", {}, el("tr", {}, ["stage", "layers", "parameters, 10⁹", "in flight", "state", "peak"].map((title) => el("th", { className: "number" }, title)), el("th", {}, "moment of the peak"))),
      el("tbody", {}, held.stages.map(([stage, layers, parameters, flight, state, peak, moment]) => el("tr", {},
        [stage, layers, (parameters / 1e9).toFixed(2), flight, gib(state), gib(peak)].map((number) => el("td", { className: "number" }, String(number))), el("td", {}, moment))))) : null)));
  return parts;
}
function values(launch) {
  if (!launch.blocks.length) return [];
  const { texts } = data;
  const all = launch.blocks.flatMap((block) => data.blocks[block]).map((number) => {
    const [key, value, unknown, origins] = data.rows[number];
    return { key: texts[key], value: texts[value], unknown: Boolean(unknown), origins, set: origins.length > 0 || Boolean(unknown) };
  }).filter((row) => !row.key.endsWith("__class__"));
  const search = el("input", { type: "search", className: "search", placeholder: "Find keys, values, files", "aria-label": "Find keys, values, files" });
  const defaults = el("input", { type: "checkbox" });
  const count = el("span", {});
  const rowsOf = el("tbody", {});
  const origin = ([at, value, launchPath], latest) => el("span", { className: latest ? "" : "before" },
    latest ? "" : "before: ", latest ? "" : `${texts[value]}  `, el("code", {}, texts[at]), latest && launchPath ? el("span", { className: "tag" }, "launch path") : null);
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rowsOf.replaceChildren();
    let section = null, shown = 0;
    for (const row of all) {
      if (!row.set && !defaults.checked && !words.length) continue;
      const text = [row.key, row.value, ...row.origins.map(([at]) => texts[at])].join(" ").toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
      const head = row.key.includes(".") ? row.key.slice(0, row.key.indexOf(".")) : "(container)";
      if (head !== section) rowsOf.append(el("tr", { className: "section" }, el("td", { colSpan: 3 }, head)));
      section = head;
      shown += 1;
      rowsOf.append(el("tr", { className: row.set ? "" : "default" },
        el("td", {}, el("code", {}, row.key)),
        el("td", {}, row.unknown ? el("span", { className: "near" }, `unknown: ${row.value}`) : el("code", {}, row.value)),
        el("td", {}, row.origins.length ? [...row.origins].reverse().map((each, index) => origin(each, index === 0)) : el("span", { className: "dim" }, row.unknown ? "" : "default"))));
    }
    count.textContent = `${shown} of ${plural(all.length, "key")}`;
  };
  search.addEventListener("input", show);
  defaults.addEventListener("change", show);
  show();
  return [el("h3", {}, "Values", el("small", {}, "as training would use them, and who set them")),
    el("div", { className: "tools" }, search, el("label", {}, defaults, " defaults too"), count),
    el("table", { className: "values" }, el("thead", {}, el("tr", {}, el("th", {}, "key"), el("th", {}, "value"), el("th", {}, "set by"))), rowsOf)];
}
function show(index) {
  const launch = data.launches[index];
  const order = Array.from(body.rows).filter((row) => !row.hidden || row.dataset.index === String(index)).map((row) => Number(row.dataset.index));
  const at = order.indexOf(index);
  const step = (to, text) => (order[to] === undefined ? null : el("a", { href: `#launch-${order[to] + 1}` }, text));
  document.title = `${launch.name} · ${document.body.dataset.title}`;
  const findings = launch.findings;
  page.replaceChildren(
    el("nav", {}, el("a", { href: "#" }, "← all launches"), step(at - 1, "previous"), step(at + 1, "next")),
    el("h2", {}, launch.name),
    el("p", { className: "where" }, [launch.name !== launch.recipe ? launch.recipe : "", launch.place, launch.condition ? `shown where ${launch.condition}` : ""].filter(Boolean).join(" · ")),
    facts(launch),
    el("h3", {}, findings.length ? plural(findings.length, "finding") : "No findings",
      launch.undecided ? el("small", {}, `${plural(launch.undecided, "rule")} could not be decided`) : null),
    ...findings.map(finding), ...memory(launch), ...values(launch));
}
let position = 0;
function route() {
  const match = /^#launch-(\d+)$/.exec(location.hash);
  const index = match ? Number(match[1]) - 1 : -1;
  const single = index >= 0 && index < data.launches.length;
  if (single && !list.hidden) position = window.scrollY;
  list.hidden = single;
  page.hidden = !single;
  if (single) show(index);
  else document.title = document.body.dataset.title;
  window.scrollTo(0, single ? 0 : position);
}
window.addEventListener("hashchange", route);

// --- light and dark ---------------------------------------------------------------------------------------------------

const theme = document.querySelector(".theme");
function dark() {
  const set = document.documentElement.style.colorScheme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function paint(scheme) {
  document.documentElement.style.colorScheme = scheme;
  theme.textContent = dark() ? "Light" : "Dark";
}
let kept = "";
try { kept = localStorage.getItem("mblint-theme") ?? ""; } catch { /* a page opened from disk may have none */ }
paint(kept === "dark" || kept === "light" ? kept : "");
theme.addEventListener("click", () => {
  paint(dark() ? "light" : "dark");
  try { localStorage.setItem("mblint-theme", document.documentElement.style.colorScheme); } catch { /* as above */ }
});
theme.hidden = false;
form.hidden = false;
filter();
route();
